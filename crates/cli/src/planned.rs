//! Tables of numbers that raddle commands predict: each row is a command, run as a separate process.
//!
//! The rows are data of a workload ([`raddle_tune::planned`]).

use crate::exit::Exit;
use raddle::Error;
use raddle_core::cancel::CancelToken;
use raddle_hdf5::child::OwnProgram;
use raddle_tune::planned::{Case, PlannedRow, PlannedTable, ResultTable};
use std::process::{Command, Stdio};

/// Computes the tables; rows for more processes than this machine has are included only if `simulates`.
///
/// # Errors
/// If a command fails or its output lacks a number.
pub fn carry_out(planned: &[PlannedTable], simulates: bool, cancel: &CancelToken) -> Result<Vec<ResultTable>, Error> {
    let mut tables = Vec::new();
    for PlannedTable { name, title, paper, cases } in planned {
        let mut rows = Vec::new();
        for case in cases.iter().filter(|case| simulates || !case.simulate) {
            cancel.check().map_err(|_| Error::of_tune(&raddle_tune::TuneError::Cancelled))?;
            rows.push(row(case)?);
        }
        if !rows.is_empty() {
            tables.push(ResultTable { name: name.clone(), title: title.clone(), paper: paper.clone(), rows });
        }
    }
    Ok(tables)
}

/// Runs a command and extracts its numbers.
fn row(case: &Case) -> Result<PlannedRow, Error> {
    let not_started =
        |cause: std::io::Error| Error::new(Exit::Internal, &format!("raddle cannot be started again: {cause}"));
    let program = OwnProgram::find().map_err(not_started)?;
    let mut command = Command::new(program.executable);
    command.args(program.arguments);
    command.args(case.command.split_whitespace()).args(["--json", "--progress", "never"]).stdin(Stdio::null());
    let output = command.output().map_err(not_started)?;
    let failed = |why: &str| Error::new(Exit::Internal, &format!("raddle {}: {}", case.command, why.trim()));
    if !output.status.success() {
        return Err(failed(&String::from_utf8_lossy(&output.stderr)));
    }
    let answer = serde_json::from_slice(&output.stdout).map_err(|error| failed(&error.to_string()))?;
    case.row(&answer).map_err(|error| failed(&error.to_string()))
}
