//! OME-Zarr: metadata of groups and arrays, and shards.

use crate::scratch;
use raddle_core::cancel::CancelToken;
use raddle_core::ranks::communicator::SingleProcess;
use raddle_core::report::progress::{Silent, Watch};
use raddle_idx::zarr::{ChunkCompression, Downsample, FormOptions, ImageLayout, Images, ZarrWriter};
use raddle_idx::{BoxData, WriteOptions};

/// Files of the tested folder, whose contents are concatenated in the input.
const FILES: [&str; 4] = ["zarr.json", "0/zarr.json", "0/c/0/0", "0/c/0/1"];

/// Separator between the files.
const END: &[u8] = b"\n\x00\n";

/// Maximum number of samples of a changed shape that is read.
const MANY_SAMPLES: u64 = 1 << 16;

/// Runs the target whose input is the files of a folder with one image.
pub(crate) fn folder(bytes: &[u8]) {
    let mut rest = bytes;
    for name in FILES {
        let end = rest.windows(END.len()).position(|window| window == END).unwrap_or(rest.len());
        let path = scratch::path("a.zarr").join(name);
        std::fs::create_dir_all(path.parent().expect("below the folder")).expect("a temporary folder takes folders");
        std::fs::write(&path, &rest[..end]).expect("a temporary folder takes files");
        rest = rest.get(end + END.len()..).unwrap_or_default();
    }
    let Ok(Images { images, .. }) = Images::open(&scratch::path("a.zarr")) else { return };
    for image in &images {
        let domain = image.domain(0);
        let is_small = (0..image.level_count())
            .all(|level| image.domain(level).sample_count().is_some_and(|samples| samples < MANY_SAMPLES));
        if !is_small {
            continue;
        }
        let check = image.check(1, &CancelToken::new()).expect("the files can be read");
        let read = image.read(0, &domain);
        assert!(read.is_ok() || !check.bad.is_empty(), "{read:?}");
        let len_bytes = domain.sample_count().map(|samples| samples * image.number().len_bytes() as u64);
        assert!(read.is_err() || read.is_ok_and(|samples| Some(samples.len() as u64) == len_bytes));
    }
}

/// Returns the bytes of one folder for each codec.
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    [ChunkCompression::None, ChunkCompression::Gzip, ChunkCompression::Zstd].map(seed).to_vec()
}

fn seed(compression: ChunkCompression) -> Vec<u8> {
    let options = FormOptions {
        chunk: Some(vec![4, 4]),
        shard: Some(vec![8, 8]),
        levels: Some(1),
        downsample: Downsample::Subsample,
        compression,
        ..FormOptions::default()
    };
    let fields = vec![("a".to_owned(), "uint16".parse().expect("a type"))];
    let form = ImageLayout::new(&[13, 7], fields, &options).expect("a form");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("a.zarr");
    let samples: Vec<u8> = (0..13 * 7 * 2).map(|at| (at / 3) as u8).collect();
    let patches = vec![BoxData { region: form.domain(), arrays: vec![samples.into()] }];
    let options = WriteOptions { jobs: 1, ..WriteOptions::default() };
    let mut writer = ZarrWriter::new(&path, form, options).expect("a writer");
    let watch = Watch { observer: &Silent, cancel: &CancelToken::new() };
    let mut report = writer.write_collective(patches, &watch, &SingleProcess).expect("a temporary folder takes files");
    writer.publish(&mut report, &SingleProcess).expect("a temporary folder takes files");
    let file = |name: &&str| [&std::fs::read(path.join(name)).expect("it has been written")[..], END].concat();
    FILES.iter().flat_map(file).collect()
}
