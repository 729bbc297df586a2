//! `raddle idx`: refusals and messages, beyond what the transcripts show.

use assert_cmd::Command;
use raddle_idx::dataset::sample::Number;
use raddle_idx::read::npy::NpyHead;
use serde_json::Value;
use std::path::Path;

/// Runs `raddle` in `folder`; returns exit code, standard output, standard error.
fn raddle(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    let mut command = Command::cargo_bin("raddle").unwrap();
    command.current_dir(folder).env("NO_COLOR", "1").args(arguments);
    let output = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// Runs `raddle`, which must succeed.
fn done(folder: &Path, arguments: &[&str]) -> String {
    let (code, stdout, stderr) = raddle(folder, arguments);
    assert_eq!(code, 0, "{arguments:?}: {stdout}{stderr}");
    stdout
}

/// Runs `raddle`, which must end with `code` and print `words`.
fn ends(folder: &Path, arguments: &[&str], code: i32, words: &str) {
    let (got, stdout, stderr) = raddle(folder, arguments);
    assert_eq!(got, code, "{arguments:?}: {stdout}{stderr}");
    assert!(stdout.contains(words) || stderr.contains(words), "{arguments:?}: {stdout}{stderr}");
}

/// Writes an array of consecutive bytes, starting with `first`.
fn array(folder: &Path, name: &str, shape: &[u64], first: u8) {
    let count: u64 = shape.iter().product();
    let mut bytes = NpyHead::to_bytes(Number::Uint8, shape);
    bytes.extend((0..count).map(|at| first.wrapping_add(at as u8)));
    std::fs::write(folder.join(name), bytes).unwrap();
}

/// Creates a folder with two arrays of 3 x 4 x 5 bytes, `a.npy` and `b.npy`.
fn two_arrays() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    array(folder.path(), "a.npy", &[3, 4, 5], 0);
    array(folder.path(), "b.npy", &[3, 4, 5], 100);
    folder
}

/// Writes vectors of float32, by sample.
fn vectors(folder: &Path, name: &str, shape: &[u64], samples: &[Vec<f32>]) {
    let mut bytes = NpyHead::to_bytes(Number::Float32, &[shape, &[samples[0].len() as u64]].concat());
    bytes.extend(samples.iter().flatten().flat_map(|number| number.to_le_bytes()));
    std::fs::write(folder.join(name), bytes).unwrap();
}

#[test]
fn vectors_that_became_fields_are_compared_as_vectors() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path();
    let mut samples: Vec<Vec<f32>> =
        (0..60).map(|at| (0..9).map(|component| (at * 10 + component) as f32).collect()).collect();
    vectors(folder, "v.npy", &[3, 4, 5], &samples);
    let wrote = done(folder, &["idx", "write", "v.npy", "-o", "whole.idx", "--vector"]);
    assert!(wrote.contains("OpenVisus does not read field v:"), "{wrote}");
    for (output, options) in [("wide.idx", &["zip", "wide"]), ("near.idx", &["zfp:accuracy=0.25", "all"])] {
        let line = ["idx", "write", "v.npy", "-o", output, "--vector", "-c", options[0], "--split-vectors", options[1]];
        let wrote = done(folder, &line);
        assert!(wrote.starts_with(&format!("{output}: 9 fields")) && !wrote.contains("OpenVisus"), "{wrote}");
    }
    let against = |output, vector| ["idx", "verify", output, "--against", vector, "--vector", "--name", "v"];
    assert!(done(folder, &against("wide.idx", "v.npy")).starts_with("equal: wide.idx"));
    assert!(done(folder, &against("near.idx", "v.npy")).starts_with("equal except for rounding: near.idx"));
    // Changes one component of one sample, and two of another, which are two samples; the first is within the rounding
    // of zfp.
    samples[59][8] += 0.125;
    (samples[20][0], samples[20][3]) = (-1.0, f32::NAN);
    vectors(folder, "other.npy", &[3, 4, 5], &samples);
    for (output, samples) in [("wide.idx", "2"), ("near.idx", "1")] {
        let (code, reported, _) = raddle(folder, &against(output, "other.npy"));
        assert!(code == 8 && reported.contains("NOT EQUAL"), "{reported}");
        let row: Vec<&str> = reported.lines().last().unwrap_or_default().split_whitespace().collect();
        assert_eq!(row, ["v", "-", samples, "other.npy"]);
    }
    // A missing component, or a different number of components.
    done(folder, &["idx", "write", "v.npy", "-o", "u.idx", "--vector", "--split-vectors", "all", "--name", "u"]);
    ends(folder, &against("u.idx", "v.npy"), 8, "has no field v");
    vectors(folder, "short.npy", &[3, 4, 5], &vec![vec![0.0; 10]; 60]);
    ends(folder, &against("wide.idx", "short.npy"), 8, "has no field v");
    // Memory for the components is requested.
    let line = ["idx", "write", "v.npy", "-o", "m.idx", "--vector", "--split-vectors", "all", "--memory", "3000"];
    ends(folder, &line, 6, "splitting vectors into fields");
}

/// Header as written by PIDX 6.1: no layout of fields, five axes in the box, nothing after the last line.
const HEADER_OF_PIDX: &str = "(version)\n6.1\n(io mode)\nidx\n(box)\n0 4 0 3 0 2 0 0 0 0\n(partition size)\n8 4 4\n\
(partition offset)\n0 0 0\n(partition index)\n0\n(endian)\nlittle\n(restructure box size)\n4 4 4\n(cores)\n8\n\
(compression bit rate)\n64.000000\n(compression type)\n0\n(fields)\na 1*uint8 + \nb 1*uint8\n(bits)\nV2102100\n\
(bitsperblock)\n3\n(blocksperfile)\n256\n(filename_template)\n./p/%01x.bin\n(time)\n0 0 time%09d/";

#[test]
fn the_order_is_that_of_the_blocks() {
    let temporary = two_arrays();
    let folder = temporary.path();
    let orders = |name: &str| {
        let info: Value = serde_json::from_str(&done(folder, &["idx", "info", name, "--json"])).unwrap();
        let fields = info["fields"].as_array().unwrap();
        fields.iter().map(|field| field["order"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let layout = ["--bits-per-block", "3", "-c", "none", "--bitmask", "V2102100", "--step", "0", "-q"];
    let write = |output: &str, order: &str| {
        done(folder, &[&["idx", "write", "a.npy", "b.npy", "-o", output, "--order", order], &layout[..]].concat());
    };
    write("p.idx", "hz");
    let file = folder.join("p/time000000000/0.bin");
    std::fs::rename(folder.join("p/time_0000"), folder.join("p/time000000000")).unwrap();
    std::fs::rename(folder.join("p/time000000000/0000.bin"), &file).unwrap();
    std::fs::write(folder.join("p.idx"), HEADER_OF_PIDX).unwrap();
    done(folder, &["idx", "verify", "p.idx", "--against", "a.npy", "b.npy", "--step", "0"]);
    assert_eq!(orders("p.idx"), ["hz", "hz"]);
    // Without blocks, only the header counts.
    std::fs::rename(&file, folder.join("gone")).unwrap();
    assert_eq!(orders("p.idx"), ["hz", "hz"]);
    // Blocks contradict the header: field b has rows.
    let mut bytes = std::fs::read(folder.join("gone")).unwrap();
    bytes[40 * (1 + 256) + 23] |= 0x10;
    std::fs::write(&file, &bytes).unwrap();
    assert_eq!(orders("p.idx"), ["hz", "rows"]);
    // A record that belongs to no block.
    bytes[40 * (1 + 256) + 8] = 0xff;
    std::fs::write(&file, &bytes).unwrap();
    assert_eq!(orders("p.idx"), ["hz", "hz"]);
    write("r.idx", "rows");
    assert_eq!(orders("r.idx"), ["rows", "rows"]);
    let text = std::fs::read_to_string(folder.join("r.idx")).unwrap();
    std::fs::write(folder.join("r.idx"), text.replace("row_major", "hzorder")).unwrap();
    assert_eq!(orders("r.idx"), ["rows", "rows"]);
    std::fs::remove_dir_all(folder.join("r")).unwrap();
    assert_eq!(orders("r.idx"), ["hz", "hz"]);
}

#[test]
fn a_box_is_put_into_a_step() {
    let temporary = two_arrays();
    let folder = temporary.path();
    array(folder, "p.npy", &[2, 4, 1], 200);
    let layout = ["--as", "steps", "--name", "v", "--bits-per-block", "3", "--blocks-per-file", "2", "-q"];
    done(folder, &[&["idx", "write", "a.npy", "b.npy", "-o", "st.idx"], &layout[..]].concat());
    let into = |input: &'static str, step: &'static str, place: &'static str| {
        ["idx", "write", input, "-o", "st.idx", "--name", "v", "--step", step, "--into", place, "--progress", "never"]
    };
    let wrote = done(folder, &into("p.npy", "1", "z=1:3,x=4:5"));
    assert!(wrote.starts_with("st.idx: 2 x 4 x 1 samples of v put into 3 x 4 x 5 of time step 1\n"), "{wrote}");
    let mut want = std::fs::read(folder.join("b.npy")).unwrap();
    let (start, part) = (want.len() - 60, std::fs::read(folder.join("p.npy")).unwrap());
    for (row, value) in part[part.len() - 8..].iter().enumerate() {
        want[start + 20 + 5 * row + 4] = *value;
    }
    std::fs::write(folder.join("c.npy"), want).unwrap();
    done(folder, &["idx", "verify", "st.idx", "--against", "a.npy", "c.npy", "--as", "steps", "--name", "v"]);
    // Anything that does not fit is refused, and nothing changes.
    ends(
        folder,
        &into("p.npy", "1", "z=1:3,x=3:5"),
        3,
        "the inputs have 2 x 4 x 1 samples, but --into names a box of 2 x 4 x 2",
    );
    ends(folder, &into("p.npy", "1", "z=2:4,x=4:5"), 2, "--into extends past z = 3");
    ends(folder, &into("p.npy", "1", "u=0:1"), 2, "--into names axis u");
    ends(folder, &into("p.npy", "2", "z=1:3,x=4:5"), 3, "has no time step 2; available: 0 to 1");
    let without = ["idx", "write", "p.npy", "-o", "st.idx", "--name", "v", "--into", "z=1:3,x=4:5"];
    ends(folder, &without, 3, "name one with --step");
    ends(
        folder,
        &["idx", "write", "p.npy", "-o", "st.idx", "--step", "1", "--into", "z=1:3,x=4:5"],
        3,
        "no field p; it has v",
    );
    ends(folder, &[&into("p.npy", "1", "z=1:3,x=4:5")[..], &["-c", "zip"]].concat(), 2, "cannot be used with");
    done(folder, &["idx", "verify", "st.idx", "--against", "a.npy", "c.npy", "--as", "steps", "--name", "v"]);
    // A block to be modified must exist; others may be missing, and remain so.
    let files = |step: &str| folder.join("st").join(step);
    let mut names: Vec<_> = std::fs::read_dir(files("time_0001")).unwrap().map(|file| file.unwrap().path()).collect();
    names.sort();
    let first = std::fs::read(&names[0]).unwrap();
    std::fs::write(&names[0], [&first[..40], &[0; 40][..], &first[80..]].concat()).unwrap();
    ends(folder, &into("p.npy", "1", "z=0:2,x=0:1"), 3, "block 0 of field");
    std::fs::write(&names[0], [&first[..80], &[0; 40][..], &first[120..]].concat()).unwrap();
    let (_, reported, _) = raddle(folder, &["idx", "verify", "st.idx"]);
    assert!(reported.contains("1 block missing or damaged"), "{reported}");
    array(folder, "one.npy", &[1, 1, 1], 7);
    done(folder, &into("one.npy", "1", "z=0:1,y=0:1,x=0:1"));
    let (_, reported, _) = raddle(folder, &["idx", "verify", "st.idx"]);
    assert!(reported.contains("1 block missing or damaged"), "{reported}");
    std::fs::remove_dir_all(files("time_0000")).unwrap();
    ends(folder, &into("p.npy", "0", "z=1:3,x=4:5"), 3, "has no time step 0");
}

#[test]
fn what_cannot_be_replaced_in_part_is_refused() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path();
    let scalars: Vec<Vec<f32>> = (0..60).map(|at| vec![at as f32]).collect();
    vectors(folder, "v.npy", &[3, 4, 5], &scalars);
    vectors(folder, "p.npy", &[1, 4, 5], &scalars[..20]);
    let into = |output: &'static str| {
        ["idx", "write", "p.npy", "-o", output, "--vector", "--name", "v", "--into", "z=1:2", "--progress", "never"]
    };
    let written =
        |output: &'static str| ["idx", "write", "v.npy", "-o", output, "--vector", "-q", "-c", "zfp:accuracy=0.1"];
    done(folder, &written("near.idx"));
    ends(folder, &into("near.idx"), 3, "would be rounded again");
    done(folder, &["idx", "write", "v.npy", "-o", "flat.idx", "--vector", "-q"]);
    let text = std::fs::read_to_string(folder.join("flat.idx")).unwrap();
    std::fs::rename(folder.join("flat/0000.bin"), folder.join("0000.bin")).unwrap();
    std::fs::write(folder.join("flat.idx"), text.replace("./flat/%04x.bin", "./%04x.bin")).unwrap();
    ends(folder, &into("flat.idx"), 3, "do not give each time step a separate folder");
}

#[test]
fn a_dataset_is_written_again() {
    let temporary = two_arrays();
    let folder = temporary.path();
    let steps = ["--as", "steps", "--name", "v", "--step", "3", "--bits-per-block", "3", "-q"];
    done(folder, &[&["idx", "write", "a.npy", "b.npy", "-o", "old.idx"], &steps[..]].concat());
    done(
        folder,
        &["idx", "write", "old.idx", "-o", "new.idx", "-c", "none", "--order", "hz", "--blocks-per-file", "2", "-q"],
    );
    let info: Value = serde_json::from_str(&done(folder, &["idx", "info", "new.idx", "--json"])).unwrap();
    assert_eq!((&info["steps"], &info["fields"][0]["order"]), (&serde_json::json!([3, 4]), &serde_json::json!("hz")));
    done(
        folder,
        &["idx", "verify", "new.idx", "--against", "a.npy", "b.npy", "--as", "steps", "--name", "v", "--step", "3"],
    );
    // One step, a part, under another name and with another type.
    let part = ["--step", "4", "--crop", "x=1:3,z=0:2", "--name", "w", "--cast", "float32"];
    done(folder, &[&["idx", "write", "old.idx", "-o", "part.idx", "-q"], &part[..]].concat());
    done(folder, &[&["idx", "verify", "part.idx", "--against", "old.idx"], &part[..]].concat());
    done(folder, &["idx", "read", "part.idx", "-o", "part.npy"]);
    let bytes = std::fs::read(folder.join("part.npy")).unwrap();
    let (numbers, _) = bytes[bytes.len() - 64..].as_chunks::<4>();
    let want: Vec<f32> =
        (0..2).flat_map(|z| (0..4).flat_map(move |y| [1, 2].map(|x| (100 + 20 * z + 5 * y + x) as f32))).collect();
    assert_eq!(numbers.iter().map(|number| f32::from_le_bytes(*number)).collect::<Vec<_>>(), want);
    // Values that the type cannot hold; the step before has none.
    ends(
        folder,
        &["idx", "write", "old.idx", "-o", "x.idx", "--cast", "int8"],
        3,
        "value 128 of field v does not fit int8",
    );
    done(folder, &["idx", "write", "b.npy", "-o", "cast.idx", "--cast", "uint16", "-q"]);
    assert!(done(folder, &["idx", "info", "cast.idx"]).contains(" uint16 "));
    // Inputs are not overwritten.
    for (output, force) in [("old.idx", "--force"), ("./old.idx", "--force"), ("old.idx", "--quiet")] {
        ends(folder, &["idx", "write", "old.idx", "-o", output, force], 5, "is the input, or has its blocks");
    }
    std::fs::copy(folder.join("old.idx"), folder.join("copy.idx")).unwrap();
    ends(folder, &["idx", "write", "copy.idx", "-o", "old.idx", "-f"], 5, "is the input, or has its blocks");
    let refusals: [(&[&str], i32, &str); 8] = [
        (&["old.idx", "a.npy"], 2, "must be the only input"),
        (&["old.idx", "--as", "steps"], 2, "--as steps only applies to arrays"),
        (&["old.idx", "--vector"], 2, "--vector only applies to arrays"),
        (&["old.idx", "--field", "u"], 3, "no field u; it has v"),
        (&["old.idx", "--crop", "u=0:1"], 2, "--crop names axis u"),
        (&["old.idx", "--crop", "x=3:9"], 3, "the dataset has samples 0 to before 5"),
        (&["old.idx", "--step", "9"], 3, "has no time step 9"),
        (&["a.npy", "--crop", "x=0:1"], 2, "--crop applies to an input NAME.idx"),
    ];
    for (arguments, code, words) in refusals {
        ends(folder, &[&["idx", "write", "-o", "x.idx"], arguments].concat(), code, words);
    }
    // Memory is that of a step's samples, unless blocks are copied as blocks.
    ends(folder, &["idx", "write", "old.idx", "-o", "m.idx", "--memory", "50", "--crop", "x=0:5"], 6, "raise --memory");
    // Missing blocks have the default value if requested.
    std::fs::remove_dir_all(folder.join("old/time_0004")).unwrap();
    std::fs::create_dir(folder.join("old/time_0004")).unwrap();
    ends(folder, &["idx", "write", "old.idx", "-o", "z.idx"], 3, "block 0 of field");
    done(folder, &["idx", "write", "old.idx", "-o", "y.idx", "--missing-as-default"]);
}

#[test]
fn where_samples_lie_in_the_world_is_kept_of_a_whole_dataset() {
    let temporary = two_arrays();
    let folder = temporary.path();
    done(folder, &["idx", "write", "a.npy", "-o", "old.idx", "-q"]);
    let text = std::fs::read_to_string(folder.join("old.idx")).unwrap();
    let keys = "(axis)\nX Y Z\n(physic_box)\n0 1 0 2 0 3\n(missing_blocks)\n0\n";
    std::fs::write(folder.join("old.idx"), format!("{text}{keys}")).unwrap();
    let others = |name: &str| {
        let info: Value = serde_json::from_str(&done(folder, &["idx", "info", name, "--json"])).unwrap();
        info["others"].clone()
    };
    done(folder, &["idx", "write", "old.idx", "-o", "new.idx", "-q"]);
    assert_eq!(others("new.idx"), serde_json::json!([["axis", "X Y Z"], ["physic_box", "0 1 0 2 0 3"]]));
    done(folder, &["idx", "write", "old.idx", "-o", "part.idx", "-q", "--crop", "x=0:2"]);
    assert_eq!(others("part.idx"), serde_json::json!([["axis", "X Y Z"]]));
}

#[test]
fn a_missing_step_is_reported() {
    let temporary = two_arrays();
    let folder = temporary.path();
    let against = ["idx", "verify", "st.idx", "--against", "a.npy", "b.npy", "--as", "steps"];
    done(folder, &["idx", "write", "a.npy", "b.npy", "-o", "st.idx", "--as", "steps", "-q"]);
    done(folder, &against);
    std::fs::rename(folder.join("st/time_0001"), folder.join("gone")).unwrap();
    let words = "DAMAGED: st.idx: time step 1, which the .idx file names, is missing";
    ends(folder, &["idx", "verify", "st.idx"], 8, words);
    ends(folder, &against, 8, words);
    // A step between others may be missing, but cannot be compared.
    std::fs::rename(folder.join("gone"), folder.join("st/time_0001")).unwrap();
    done(folder, &["idx", "write", "a.npy", "-o", "st.idx", "--append", "--step", "2", "-q"]);
    std::fs::remove_dir_all(folder.join("st/time_0001")).unwrap();
    done(folder, &["idx", "verify", "st.idx"]);
    ends(folder, &against, 8, "has no time step 1; available: 0, 2");
    // The same applies to reading: missing blocks are not the error here.
    let read = ["idx", "read", "st.idx", "-o", "p.npy", "--step", "1"];
    let (code, _, stderr) = raddle(folder, &read);
    assert!(code == 3 && stderr.contains("has no time step 1; available: 0, 2"), "{stderr}");
    assert!(!stderr.contains("--missing-as-default"), "{stderr}");
    done(folder, &[&read[..], &["--missing-as-default"]].concat());
    // A missing file of an existing step is reported with its blocks.
    std::fs::rename(folder.join("st/time_0002/0000.bin"), folder.join("gone")).unwrap();
    let read = ["idx", "read", "st.idx", "-o", "q.npy", "--step", "2"];
    let (code, _, stderr) = raddle(folder, &read);
    assert!(code == 3 && stderr.contains("0000.bin: block 0 of field"), "{stderr}");
    assert!(stderr.contains("--missing-as-default"), "{stderr}");
    done(folder, &[&read[..], &["--missing-as-default"]].concat());
}

#[test]
fn equal_is_reported_of_everything_or_not_at_all() {
    let temporary = two_arrays();
    let folder = temporary.path();
    done(folder, &["idx", "write", "a.npy", "b.npy", "-o", "f.idx", "-q"]);
    done(folder, &["idx", "verify", "f.idx", "--against", "a.npy", "b.npy"]);
    ends(folder, &["idx", "verify", "f.idx", "--against", "a.npy"], 8, "NOT COMPARED: f.idx: not everything");
    let (code, stdout, _) = raddle(folder, &["idx", "verify", "f.idx", "--against", "a.npy", "--json"]);
    let outcome: Value = serde_json::from_str(&stdout).unwrap();
    let left = serde_json::json!([{"field": "b", "time": null}]);
    assert_eq!((code, &outcome["not_compared"], &outcome["missing_steps"]), (8, &left, &serde_json::json!([])));
    done(folder, &["idx", "write", "a.npy", "b.npy", "a.npy", "-o", "s.idx", "--as", "steps", "-q"]);
    let (code, stdout, _) =
        raddle(folder, &["idx", "verify", "s.idx", "--against", "a.npy", "--step", "0", "--name", "a", "--json"]);
    let outcome: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((code, &outcome["not_compared"]), (8, &serde_json::json!([{"field": "a", "time": [1, 2]}])));
    done(folder, &["idx", "write", "a.npy", "b.npy", "-o", "z.zarr", "-q"]);
    done(folder, &["idx", "verify", "z.zarr", "--against", "a.npy", "b.npy"]);
    ends(folder, &["idx", "verify", "z.zarr", "--against", "a.npy"], 8, "NOT COMPARED");
    done(folder, &["idx", "write", "a.npy", "b.npy", "-o", "t.zarr", "--as", "steps", "-q"]);
    done(folder, &["idx", "verify", "t.zarr", "--against", "a.npy", "b.npy", "--as", "steps"]);
    ends(folder, &["idx", "verify", "t.zarr", "--against", "b.npy", "--step", "1", "--name", "a"], 8, "NOT COMPARED");
}

#[test]
fn a_slice_of_all_axes_but_one_is_a_line() {
    let temporary = two_arrays();
    let folder = temporary.path();
    array(folder, "flat.npy", &[3, 4], 0);
    array(folder, "line.npy", &[7], 0);
    for name in ["a", "flat", "line"] {
        done(folder, &["idx", "write", &format!("{name}.npy"), "-o", &format!("{name}.idx"), "-q"]);
    }
    let size = |name: &str, slice: &[&str]| {
        done(folder, &[&["idx", "view", name, "-f", "-o", "p.png"], slice].concat());
        let png = std::fs::read(folder.join("p.png")).unwrap();
        [16, 20].map(|at| u32::from_be_bytes(png[at..at + 4].try_into().unwrap()))
    };
    assert_eq!(size("a.idx", &["--slice", "y=3,z=1"]), [5, 1]);
    assert_eq!(size("a.idx", &["--slice", "x=0,z=1"]), [4, 1]);
    assert_eq!(size("a.idx", &["--slice", "z=1"]), [5, 4]);
    assert_eq!(size("flat.idx", &["--slice", "y=1"]), [4, 1]);
    assert_eq!(size("flat.idx", &[]), [4, 3]);
    assert_eq!(size("line.idx", &[]), [7, 1]);
}

#[test]
fn only_a_file_of_others_is_replaced() {
    let temporary = two_arrays();
    let folder = temporary.path();
    done(folder, &["idx", "write", "a.npy", "-o", "o.idx", "-q"]);
    rustix::fs::mkfifoat(rustix::fs::CWD, folder.join("fifo.npy"), 0o600.into()).unwrap();
    std::os::unix::fs::symlink("o.idx", folder.join("link.npy")).unwrap();
    std::fs::write(folder.join("there.npy"), b"old").unwrap();
    for command in ["read", "view"] {
        for (output, words) in [
            ("fifo.npy", "is not a regular file"),
            ("/dev/full", "is not a regular file"),
            ("o.idx", "is also an input"),
            ("link.npy", "is also an input"),
            ("o/0000.bin", "is one of the files of o.idx"),
            ("o", "is a folder"),
        ] {
            ends(folder, &["idx", command, "o.idx", "-f", "-o", output], 5, words);
        }
        ends(folder, &["idx", command, "o.idx", "-o", "there.npy"], 5, "use --force to replace it");
    }
    done(folder, &["idx", "verify", "o.idx", "--against", "a.npy", "--name", "a"]);
    done(folder, &["idx", "read", "o.idx", "-f", "-o", "there.npy"]);
    assert_eq!(std::fs::read(folder.join("there.npy")).unwrap(), std::fs::read(folder.join("a.npy")).unwrap());
    rustix::fs::mkfifoat(rustix::fs::CWD, folder.join("fifo.idx"), 0o600.into()).unwrap();
    ends(folder, &["idx", "write", "a.npy", "-f", "-o", "fifo.idx"], 5, "is not a regular file");
}

#[test]
fn reading_writes_its_report() {
    let temporary = two_arrays();
    let folder = temporary.path();
    done(folder, &["idx", "write", "a.npy", "-o", "o.idx", "-q"]);
    done(folder, &["idx", "read", "o.idx", "-o", "p.npy", "--box", "x=0:2", "--report", "report.json"]);
    let report: Value = serde_json::from_slice(&std::fs::read(folder.join("report.json")).unwrap()).unwrap();
    assert_eq!((&report["shape"], &report["sample_len_bytes"]), (&serde_json::json!([3, 4, 2]), &24.into()));
    assert_eq!((&report["field"], &report["resolution"], &report["ranks"]), (&"a".into(), &7.into(), &1.into()));
}

#[test]
fn boxes_name_existing_axes_once() {
    let temporary = two_arrays();
    let folder = temporary.path();
    done(folder, &["idx", "write", "a.npy", "-o", "o.idx", "-q"]);
    let read = |along: &'static str| ["idx", "read", "o.idx", "-o", "p.npy", "--box", along];
    ends(folder, &read("u=0:1"), 2, "--box names axis u, but the dataset has x y z");
    ends(folder, &read("x=0:1,x=2:3"), 2, "--box names axis x twice");
    let words = "the box goes from y = 1 to before 9; the dataset has samples 0 to before 4 there";
    ends(folder, &read("y=1:9"), 3, words);
}

#[test]
fn a_plan_that_takes_too_much_memory_is_refused() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path();
    let plan = |ranks: &'static str, more: &[&'static str]| {
        [&["idx", "plan", "--progress", "never", "--per-rank", "1", "--ranks", ranks], more].concat()
    };
    ends(folder, &plan("4000000", &[]), 6, "of memory, more than 4.00 GiB");
    ends(folder, &plan("18446744073709551557", &[]), 6, "of memory, ");
    ends(folder, &plan("64", &["--bits-per-block", "0"]), 2, "use at least 1");
    ends(folder, &plan("64", &["--phases", "one"]), 2, "[possible values: two, three]");
    done(folder, &plan("64", &[]));
}

#[test]
fn anything_but_an_array_is_reported_as_what_it_is() {
    let temporary = two_arrays();
    let folder = temporary.path();
    std::fs::write(folder.join("r.raw"), b"numbers").unwrap();
    ends(folder, &["idx", "write", "r.raw", "-o", "r.idx"], 3, "a raw file needs --shape and --dtype");
    array(folder, "thin.npy", &[1, 9], 0);
    ends(folder, &["idx", "write", "thin.npy", "-o", "t.idx", "-c", "zfp"], 2, "slowest ones of length 1 not counted");
    done(folder, &["idx", "write", "a.npy", "-o", "s.idx", "--step", "3", "-q"]);
    let add = ["idx", "write", "a.npy", "-o", "s.idx", "--append", "--step", "3"];
    ends(folder, &add, 5, "name another step with --step");
    ends(folder, &["idx", "read", "s.idx", "-o", "p.npy", "--step", "7"], 3, "has no time step 7; available: 3");
    done(folder, &["idx", "write", "a.npy", "-o", "o.idx", "-q"]);
    let words = "has no time steps, but time step 7 was requested";
    ends(folder, &["idx", "read", "o.idx", "-o", "p.npy", "--step", "7"], 3, words);
    std::fs::write(folder.join("o/diary.txt"), b"mine").unwrap();
    let (code, _, stderr) = raddle(folder, &["idx", "write", "a.npy", "-o", "o.idx"]);
    assert!(
        code == 5 && stderr.contains("contains files that are not blocks") && !stderr.contains("--force"),
        "{stderr}"
    );
}
