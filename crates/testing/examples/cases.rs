//! Writes files of random schemas for test programs that are not written in Rust: `cases FOLDER FIRST COUNT` writes
//! `COUNT` cases from number `FIRST`, each in a folder named by its number. A number always gives the same files.

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use raddle_testing::plain;
use raddle_testing::strategy::{SchemaOptions, files};
use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, first, count] = arguments.as_slice() else { return Err("cases FOLDER FIRST COUNT".into()) };
    let (first, count): (u64, u64) = (first.parse()?, count.parse()?);
    let schemas = files(SchemaOptions { files: 2..=4, ..SchemaOptions::default() });
    for number in first..first + count {
        let mut seed = [0; 32];
        seed[..8].copy_from_slice(&number.to_le_bytes());
        let random = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
        let mut runner = TestRunner::new_with_rng(Config::default(), random);
        let specs = schemas.new_tree(&mut runner).map_err(|reason| reason.to_string())?.current();
        let case = Path::new(folder).join(format!("{number:06}"));
        std::fs::create_dir_all(&case)?;
        plain::make_all(&case, &specs)?;
    }
    Ok(())
}
