//! Tests of parsing workloads, and of the candidates that they compare.

use super::*;
use std::collections::BTreeSet;

const TEXT: &str = r#"
name = "mine"
title = "A test"
[[experiment]]
name = "one"
title = "One dataset"
kernel = { kind = "occam", levels = 2, rows = 8, longitudes = 16, rows_per_write = 4 }
scale.small = { rows = 16 }
base = { gzip = 1, chunk = [2, 4, 16] }
knobs = { gzip = [0, 1, 9], chunk_cache = [0, 65536] }
variants.converted = { converts = true }
"#;

fn parse(text: &str) -> Result<Workload> {
    Workload::parse(Path::new("mine.toml"), text, Scale::Tiny)
}

fn refused(text: &str) -> String {
    parse(text).unwrap_err().to_string()
}

#[test]
fn candidates_differ_from_the_default_in_one_thing() {
    let workload = parse(TEXT).unwrap();
    let names: Vec<String> = workload.experiments[0].candidates().into_iter().map(|arm| arm.name).collect();
    assert_eq!(names, ["default", "chunk_cache=0", "chunk_cache=64KiB", "gzip=0", "gzip=9", "converted"]);
    assert_eq!(workload.largest_run_len_bytes(), 2 * 8 * 16 * 4);
    let small = Workload::parse(Path::new("mine.toml"), TEXT, Scale::Small).unwrap();
    assert_eq!(small.largest_run_len_bytes(), 2 * 16 * 16 * 4);
}

#[test]
fn a_factorial_design_has_all_combinations() {
    let factorial = TEXT.replace("base =", "factorial = true\nbase =").replace("[0, 1, 9]", "[9]");
    let candidates = parse(&factorial).unwrap().experiments[0].candidates();
    // (1 + 2 values) x (1 + 1 value), and a variant.
    assert_eq!(candidates.len(), 7);
    let distinct: BTreeSet<&str> = candidates.iter().map(|arm| arm.name.as_str()).collect();
    assert!(distinct.len() == 7 && distinct.contains("chunk_cache=0 gzip=9"), "{distinct:?}");
}

#[test]
fn every_problem_is_reported() {
    assert!(refused("name = 1").contains("mine.toml: not a workload"));
    assert!(refused("name = \"a\"\ntitle = \"b\"\nexperiment = []").contains("at least one"));
    assert!(refused(&TEXT.replace("rows_per_write = 4", "rows_per_write = 3")).contains("rows_per_write"));
    assert!(refused(&TEXT.replace("levels = 2", "levels = 0")).contains("levels is out of range"));
    assert!(refused(&TEXT.replace("levels = 2", "levels = 9223372036854775807")).contains("out of range"));
    assert!(refused(&TEXT.replace("\"occam\"", "\"ocean\"")).contains("occam"));
    assert!(refused(&TEXT.replace("[0, 1, 9]", "[12]")).contains("gzip cannot be 12"));
    assert!(refused(&TEXT.replace("[2, 4, 16]", "[2, 4]")).contains("does not fit"));
    assert!(refused(&TEXT.replace("[2, 4, 16]", "[2, 4, 17]")).contains("does not fit"));
    assert!(refused(&TEXT.replace("gzip = [", "gzap = [")).contains("gzap"));
    assert!(refused(&format!("profile_from = \"two\"\n{TEXT}")).contains("experiment two"));
    let alone = TEXT.lines().filter(|line| !line.starts_with("knobs") && !line.starts_with("variants"));
    assert!(refused(&alone.collect::<Vec<_>>().join("\n")).contains("nothing is compared"));
    assert!(Workload::named("absent", Scale::Tiny).unwrap_err().to_string().contains("occam-2005"));
}

#[test]
fn ranks_and_patterns_are_of_kernels_that_have_them() {
    let text = TEXT.replace("title = \"One dataset\"", "title = \"One dataset\"\nranks = 2");
    assert!(refused(&text).contains("occam runs on a single process"));
    let random = "name = \"mine\"\ntitle = \"A test\"\n[[experiment]]\nname = \"bursts\"\ntitle = \"Bursts\"\npatterns = 3\n\
                  ranks = 2\nkernel = { kind = \"random\", longest_len_bytes = 8192, datasets = 2 }\nknobs.sieve = [1024]\n";
    let workload = parse(random).unwrap();
    let names: Vec<&str> = workload.experiments.iter().map(|experiment| experiment.name.as_str()).collect();
    assert_eq!(names, ["bursts-1", "bursts-2", "bursts-3"]);
    assert!(matches!(workload.experiments[2].kernel(), Kernel::Random { pattern: 3, .. }));
    assert!(workload.experiments.iter().all(|experiment| experiment.candidates()[1].ranks == 2));
    assert!(refused(&random.replace("patterns = 3", "patterns = 0")).contains("patterns"));
    let together = random.replace("patterns = 3\n", "").replace(
        "kind = \"random\", longest_len_bytes = 8192, datasets = 2",
        "kind = \"ior\", api = \"hdf5\", burst_len_bytes = 8, bursts = 3, collective = true",
    );
    assert!(refused(&together).contains("must be a multiple of the ranks"), "{}", refused(&together));
}

const BURSTS: &str = r#"
name = "mine"
title = "A test"
[[experiment]]
name = "bursts"
title = "Bursts of {}"
kernel = { kind = "ior", api = "hdf5", bursts = 1 }
each.burst_len_bytes = [1024, 1048576]
fits.tiny = 65536
knobs.alignment = [4096]
"#;

#[test]
fn one_entry_is_an_experiment_for_each_value_that_fits() {
    let of = |scale| {
        let workload = Workload::parse(Path::new("mine.toml"), BURSTS, scale).unwrap();
        let all = workload.experiments.iter();
        all.map(|one| (one.name.clone(), one.title.clone(), one.kernel().len_bytes())).collect::<Vec<_>>()
    };
    let [kib, mib] = [("1KiB", 1024), ("1MiB", 1 << 20)]
        .map(|(words, len)| (format!("bursts-{words}"), format!("Bursts of {words}"), len));
    assert_eq!(of(Scale::Tiny), std::slice::from_ref(&kib));
    assert_eq!(of(Scale::Full), [kib, mib]);
    assert!(refused(&BURSTS.replace("65536", "1000")).contains("at least one"));
    assert!(refused(&BURSTS.replace("[1024,", "[1024, 1024,")).contains("another experiment has the same name"));
}

#[test]
fn the_work_of_each_rank_grows_with_the_ranks() {
    let text = BURSTS.replace("fits.tiny = 65536", "ranks = 2\nper_rank = true");
    let mut experiment = parse(&text).unwrap().experiments.remove(0);
    assert_eq!(experiment.kernel().len_bytes(), 2048);
    experiment.set_ranks(5);
    let candidates = experiment.candidates();
    assert!(candidates.iter().all(|arm| (arm.kernel.len_bytes(), arm.ranks) == (5120, 5)), "{candidates:?}");
    // Without it, ranks share the work.
    let mut shared = parse(&text.replace("per_rank = true", "")).unwrap().experiments.remove(0);
    shared.set_ranks(5);
    assert_eq!(shared.kernel().len_bytes(), 1024);
    let divided = |blocks: u64| {
        let kernel = format!("bursts = 1, divided = true, blocks_per_burst = {blocks}");
        parse(&text.replace("bursts = 1", &kernel).replace("per_rank = true", ""))
    };
    // 128 numbers for two ranks.
    assert!(divided(64).is_ok());
    assert!(divided(65).unwrap_err().to_string().contains("blocks_per_burst (with the ranks"));
}

const CASES: &str = r#"
name = "mine"
title = "A test"
[[experiment]]
name = "counts"
title = "Datasets"
library = "serial.so"
kernel = { kind = "many", datasets = 1, elements = 8, attributes = 0 }
cases = [
    { name = "D=8", kernel = { datasets = 8 } },
    { name = "D=2", kernel = { datasets = 2 }, base = { sieve = 1024 } },
]
base = { meta_block = 4096 }
knobs.alignment = [4096]
variants.parallel = { library = "parallel.so", attributes = 3 }
"#;

#[test]
fn each_case_has_a_default_and_all_that_is_compared_with_it() {
    let candidates = parse(CASES).unwrap().experiments[0].candidates();
    let names: Vec<&str> = candidates.iter().map(|arm| arm.name.as_str()).collect();
    let of_case = |case: &str| ["default", "alignment=4KiB", "parallel"].map(|name| format!("{case}: {name}"));
    assert_eq!(names, [of_case("D=8"), of_case("D=2")].concat());
    assert!(matches!(candidates[3].kernel, Kernel::Many { datasets: 2, attributes: 0, .. }));
    assert!(matches!(candidates[5].kernel, Kernel::Many { datasets: 2, attributes: 3, .. }));
    assert_eq!(candidates[4].settings.words(), "alignment=4KiB meta_block=4KiB sieve=1KiB");
    assert_eq!(candidates[1].settings.words(), "alignment=4KiB meta_block=4KiB");
    let cases: Vec<Option<&str>> = candidates.iter().map(|arm| arm.case.as_deref()).collect();
    assert_eq!(cases, [[Some("D=8"); 3], [Some("D=2"); 3]].concat());
    assert!(refused(&CASES.replace("D=2", "D=8")).contains("another experiment has the same name"));
    assert!(refused(&CASES.replace("datasets = 2 }", "datasets = 0 }")).contains("datasets is out of range"));
    let none = CASES.replace("knobs.alignment = [4096]", "").replace("variants.parallel = ", "scale.full = ");
    assert!(refused(&none.replace("library = \"parallel.so\", ", "")).contains("nothing is compared"));
}

#[test]
fn variants_name_libraries_and_the_user_may_name_others() {
    let library = |arm: &Candidate| arm.library.as_ref().map(|path| path.display().to_string());
    let mut experiment = parse(CASES).unwrap().experiments.remove(0);
    let libraries: Vec<Option<String>> = experiment.candidates()[..3].iter().map(library).collect();
    assert_eq!(libraries, ["serial.so", "serial.so", "parallel.so"].map(|name| Some(name.to_owned())));
    experiment.compare_libraries(&["a.so".into(), "b.so".into()]);
    let candidates = experiment.candidates();
    let found: Vec<(&str, Option<String>)> =
        candidates[4..].iter().map(|arm| (arm.name.as_str(), library(arm))).collect();
    let other = |name: &str| Some(name.to_owned());
    let expected = [
        ("D=2: default", None),
        ("D=2: alignment=4KiB", None),
        ("D=2: hdf5=a.so", other("a.so")),
        ("D=2: hdf5=b.so", other("b.so")),
    ];
    assert_eq!(found, expected);
    assert!(refused(&CASES.replace("\"parallel.so\"", "1")).contains("library must be a string"));
}

#[test]
fn a_variant_may_have_other_ranks() {
    let with = |ranks: &str| CASES.replace("library = \"parallel.so\"", &format!("ranks = {ranks}"));
    let candidates = parse(&with("3")).unwrap().experiments[0].candidates();
    let ranks: Vec<u32> = candidates[..3].iter().map(|arm| arm.ranks).collect();
    assert_eq!((ranks, candidates[2].name.as_str()), (vec![1, 1, 3], "D=8: parallel"));
    for unfit in ["0", "65537", "-1", "\"two\""] {
        assert!(refused(&with(unfit)).contains("a whole number from 1"), "{unfit}");
    }
}

#[test]
fn inputs_are_assigned_to_ranks_that_have_some() {
    let with = |more: &str| {
        format!(
            "name = \"mine\"\ntitle = \"A test\"\n[[experiment]]\nname = \"a\"\ntitle = \"A\"\nranks = 2\n\
             kernel = {{ kind = \"nova\", inputs = 2, datasets = 1, rows = 4, columns = 1{more} }}\nknobs.gzip = [1]\n\
             base = {{ chunk = [8, 1] }}\n"
        )
    };
    assert!(parse(&with(", creation = \"single\"")).is_ok());
    let weak = parse(&with("").replace("ranks = 2", "ranks = 3\nper_rank = true")).unwrap();
    assert!(matches!(weak.experiments[0].kernel(), Kernel::Nova(nova) if nova.inputs == 6));
    assert!(refused(&with("").replace("ranks = 2", "ranks = 3")).contains("fewer inputs than ranks"));
    assert!(refused(&with(", creation = \"single\"").replace("ranks = 2", "ranks = 1")).contains("takes ranks"));
    assert!(refused(&with(", in_memory = true, partition = \"datasets\"")).contains("leave partition out"));
    assert!(refused(&with(", creation = \"single\", only = \"collect\"")).contains("leave creation out"));
    assert!(refused(&with(", layers = 3")).contains("layers"));
    assert!(refused(&with("").replace("[8, 1]", "[9, 1]")).contains("does not fit"));
}

#[test]
fn a_program_is_a_workload_of_its_own() {
    let knobs = |values: Vec<SettingValue>| BTreeMap::from([(Knob::Sieve, values)]);
    let of = |command: &[&str], knobs| {
        Workload::of_program(command.iter().map(|word| (*word).to_owned()).collect(), Verify::Auto, knobs)
    };
    let workload = of(&["/opt/sim", "a.nml"], knobs(vec![SettingValue::Whole(1024)])).unwrap();
    assert_eq!((workload.name.as_str(), workload.scale), ("sim", Scale::Own));
    assert_eq!(workload.experiments[0].candidates().len(), 2);
    assert!(of(&[], knobs(vec![SettingValue::Whole(1)])).is_err());
    assert!(of(&["sim"], knobs(vec![])).unwrap_err().to_string().contains("nothing is compared"));
}
