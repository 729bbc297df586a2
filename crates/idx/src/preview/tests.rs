use super::*;
use crate::dataset::bitmask::Bitmask;
use crate::dataset::sample::Number;
use crate::read::dataset::Dataset;
use proptest::prelude::*;
use raddle_core::cancel::CancelToken;
use raddle_core::output::publish::IfExists;
use raddle_core::plan::ArrayPlan;
use raddle_core::ranks::threads::Threads;
use std::path::Path;

fn candidate(path: &str, shape: &[u64], is_big_endian: bool) -> PreviewCandidate {
    PreviewCandidate { path: path.to_owned(), shape: shape.to_vec(), number: Number::Uint16, is_big_endian }
}

fn planned(folder: &Path, candidates: &[PreviewCandidate], max_samples: u64) -> PreviewPlan {
    let options = PreviewOptions { folder: folder.to_path_buf(), max_samples, max_len_bytes: 1 << 20 };
    PreviewPlan::new(candidates, &options).unwrap().unwrap()
}

/// Returns element number `index` of an array.
fn value(index: u64) -> u16 {
    (index * 2_654_435_761) as u16
}

/// Passes the tiles of an array selected by `which` to a preview.
fn show(preview: &Preview, dataset: usize, tile_shape: &[u64], which: impl Fn(u64) -> bool) {
    let of = &preview.plan.datasets[dataset];
    let tiles = ArrayPlan {
        shape: of.shape.clone(),
        tile_shape: tile_shape.to_vec(),
        element_len_bytes: 2,
        ..Default::default()
    };
    let origin = vec![0; of.shape.len()];
    for tile in (0..tiles.tile_count()).filter(|tile| which(*tile)) {
        let extent = tiles.tile_extent(tile);
        let mut bytes = Vec::new();
        for number in 0..tile_shape.iter().product::<u64>() {
            let mut rest = number;
            let mut at = vec![0; tile_shape.len()];
            for axis in (0..at.len()).rev() {
                at[axis] = extent.start[axis] + rest % tile_shape[axis];
                rest /= tile_shape[axis];
            }
            let index = at.iter().zip(&of.shape).fold(0, |index, (at, count)| index * count + at);
            bytes.extend(if of.is_big_endian { value(index).to_be_bytes() } else { value(index).to_le_bytes() });
        }
        let source = BoxSource { bytes: &bytes, shape: tile_shape, origin: &origin };
        preview.take(dataset, &extent, source).unwrap();
    }
}

/// Returns the expected contents of the dataset at `path` at its highest resolution.
fn expected(of: &PlannedPreview) -> Vec<u8> {
    let mut out = Vec::new();
    for number in 0..of.sample_count() {
        let (mut rest, mut index, mut stride) = (number, 0, 1);
        for axis in (0..of.shape.len()).rev() {
            index += ((rest % of.lattice.shape[axis]) << of.lattice.log2_spacing[axis]) * stride;
            rest /= of.lattice.shape[axis];
            stride *= of.shape[axis];
        }
        out.extend(value(index).to_le_bytes());
    }
    out
}

fn completed(preview: &Preview, folder: &PreviewFolder) -> Result<PreviewReport> {
    let watch = Watch { observer: &Silent, cancel: &CancelToken::new() };
    preview.complete(folder, &WriteOptions { jobs: 2, ..WriteOptions::default() }, &watch)
}

fn assert_is_preview(plan: &PreviewPlan) {
    for of in &plan.datasets {
        let dataset = Dataset::open(&plan.folder.join(of.file_name())).unwrap();
        let read = dataset.read(&dataset.whole(0)).unwrap();
        assert_eq!(read, expected(of), "{}", of.path);
    }
}

#[test]
fn what_passes_in_boxes_is_written_and_published() {
    let root = tempfile::tempdir().unwrap();
    let (folder, output) = (root.path().join("out.h5.preview"), root.path().join("out.h5"));
    let candidates = [candidate("/a/rho", &[70, 45, 33], false), candidate("/a.rho", &[2, 100, 64], true)];
    let plan = planned(&folder, &candidates, 4000);
    assert_eq!(plan.datasets[0].spacing(), [8, 2, 2]);
    let preview = Preview::new(plan.clone());
    show(&preview, 0, &[16, 8, 33], |_| true);
    let staged = PreviewFolder::begin(&folder, &output, IfExists::Fail).unwrap();
    let error = completed(&preview, &staged).unwrap_err().to_string();
    assert!(error.contains("which is a bug in raddle"), "{error}");
    show(&preview, 1, &[1, 7, 20], |_| true);
    let report = completed(&preview, &staged).unwrap();
    assert!(!folder.exists());
    staged.withdraw().unwrap();
    staged.publish().unwrap();
    drop(staged);
    assert_is_preview(&plan);
    assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 1, "no lock and no hidden folder remain");
    assert_eq!(report.datasets[1].file, folder.join("a_rho.idx"));
    let header = Dataset::open(&folder.join("a.rho.idx")).unwrap().header().clone();
    let of = |key: &str| header.others.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_str());
    assert_eq!((of("preview of"), of("preview spacing")), (Some("/a/rho"), Some("2 2 8")));
    assert_eq!((of("preview counts"), of("physic_box")), (Some("33 45 70"), Some("0 34 0 46 0 72")));
}

#[test]
fn an_older_preview_comes_back_unless_the_output_is_replaced() {
    let root = tempfile::tempdir().unwrap();
    let (folder, output) = (root.path().join("p"), root.path().join("out.h5"));
    std::fs::create_dir_all(folder.join("a")).unwrap();
    std::fs::write(folder.join(".preview-of"), "out.h5").unwrap();
    std::fs::write(folder.join("a.idx"), "old").unwrap();
    std::fs::write(folder.join("a/0000.bin"), "old").unwrap();
    assert!(matches!(PreviewFolder::begin(&folder, &output, IfExists::Fail), Err(IdxError::Exists { .. })));
    let staged = PreviewFolder::begin(&folder, &output, IfExists::Replace).unwrap();
    assert!(matches!(PreviewFolder::begin(&folder, &output, IfExists::Replace), Err(IdxError::Locked { .. })));
    staged.make().unwrap();
    staged.withdraw().unwrap();
    assert!(!folder.exists());
    drop(staged);
    assert_eq!(std::fs::read(folder.join("a.idx")).unwrap(), b"old");
    let staged = PreviewFolder::begin(&folder, &output, IfExists::Replace).unwrap();
    staged.make().unwrap();
    staged.withdraw().unwrap();
    staged.publish().unwrap();
    drop(staged);
    let names: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, [".preview-of"], "the new one, without datasets");
    std::fs::write(folder.join("notes.txt"), "mine").unwrap();
    assert!(matches!(PreviewFolder::begin(&folder, &output, IfExists::Replace), Err(IdxError::Foreign { .. })));
    assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 1);
}

#[test]
fn a_preview_of_another_output_is_never_replaced() {
    let root = tempfile::tempdir().unwrap();
    let (folder, output, elsewhere) = (root.path().join("p"), root.path().join("a.h5"), root.path().join("other/a.h5"));
    std::fs::create_dir(root.path().join("other")).unwrap();
    let begin = |output: &Path| PreviewFolder::begin(&folder, output, IfExists::Replace);
    // An empty folder has nothing to lose.
    std::fs::create_dir(&folder).unwrap();
    let staged = begin(&output).unwrap();
    staged.make().unwrap();
    staged.withdraw().unwrap();
    staged.publish().unwrap();
    drop(staged);
    for other in [&elsewhere, &root.path().join("b.h5"), &root.path().join("a.nc")] {
        let refused = begin(other).unwrap_err();
        assert!(
            matches!(&refused, IdxError::OtherPreview { owner: Some(owner), .. } if owner == Path::new("a.h5")),
            "{refused}"
        );
    }
    // Moved with its output, it is still that output's.
    std::fs::rename(&folder, root.path().join("other/p")).unwrap();
    assert!(PreviewFolder::check(&root.path().join("other/p"), &elsewhere, IfExists::Replace).is_ok());
    // A folder that does not name its output.
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("a.idx"), "of something").unwrap();
    assert!(matches!(begin(&output), Err(IdxError::OtherPreview { owner: None, .. })));
    assert_eq!(std::fs::read(folder.join("a.idx")).unwrap(), b"of something");
}

#[test]
fn ranks_bring_what_they_saw_to_the_first() {
    let root = tempfile::tempdir().unwrap();
    let (folder, output) = (root.path().join("p"), root.path().join("out.h5"));
    let plan = planned(&folder, &[candidate("/a", &[300, 90, 40], false)], 1 << 17);
    Threads::run(3, |ranks| {
        let preview = Preview::new(plan.clone());
        // The first rank sees no sample of some slabs.
        show(&preview, 0, &[13, 90, 40], |tile| tile as usize % 3 == ranks.rank());
        preview.gather(ranks).unwrap();
        if ranks.rank() == 0 {
            let staged = PreviewFolder::begin(&folder, &output, IfExists::Fail).unwrap();
            completed(&preview, &staged).unwrap();
            staged.withdraw().unwrap();
            staged.publish().unwrap();
        }
    });
    assert_is_preview(&plan);
}

#[test]
fn limits_are_kept() {
    let folder = Path::new("p");
    let candidates: Vec<_> =
        (0..40).map(|number| candidate(&format!("/a{number}"), &[1 << 20, 100, 80], false)).collect();
    let within = |max_len_bytes: u64| {
        let options = PreviewOptions { folder: folder.to_path_buf(), max_samples: 1 << 22, max_len_bytes };
        PreviewPlan::new(&candidates, &options).unwrap()
    };
    let plan = within(1 << 24).unwrap();
    assert!(plan.len_bytes() <= 1 << 24 && plan.max_samples < 1 << 22);
    assert_eq!(within(1 << 30).unwrap().max_samples, 1 << 22);
    // The longest axis is thinned first, whole pictures last.
    assert_eq!(within(1 << 30).unwrap().datasets[0].spacing(), [2048, 1, 1]);
    assert!(within(1000).is_none());
}

#[test]
fn what_is_worth_a_preview() {
    for worth in [&[32, 32][..], &[1, 40, 40], &[1000, 3, 64], &[32, 1, 1, 1, 32]] {
        assert!(is_worth(worth), "{worth:?}");
    }
    for not in [&[1 << 20][..], &[1000, 3], &[0, 64, 64], &[31, 1000], &[2, 2, 2, 2, 64, 64], &[]] {
        assert!(!is_worth(not), "{not:?}");
    }
}

proptest! {
    /// Previews rely on this: the bitmask of the samples up to a level is a prefix of the whole bitmask.
    #[test]
    fn the_bitmask_of_a_level_is_the_begin_of_the_whole(
        counts in prop::collection::vec(1u64..=4096, 2..6),
        max_samples in 1024u64..1 << 20,
    ) {
        let shape: Vec<u64> = counts.iter().rev().copied().collect();
        let plan = planned(Path::new("p"), &[candidate("/a", &shape, false)], max_samples);
        let (whole, of) = (Bitmask::for_counts(&counts).unwrap().to_string(), &plan.datasets[0]);
        prop_assert!(whole.starts_with(&of.header.bitmask.to_string()));
        prop_assert!(of.sample_count() <= plan.max_samples);
    }
}
