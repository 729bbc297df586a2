//! Writes the seeds of a target to a folder, for `make fuzz`: `seeds TARGET FOLDER`.

use raddle_fuzzing::TARGETS;

fn main() -> std::io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, folder] = arguments.as_slice() else { panic!("seeds TARGET FOLDER") };
    let target = TARGETS.iter().find(|target| target.name == name).unwrap_or_else(|| panic!("no target {name}"));
    for (number, seed) in (target.seeds)().iter().enumerate() {
        std::fs::write(format!("{folder}/seed{number:03}"), seed)?;
    }
    Ok(())
}
