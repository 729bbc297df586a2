//! [`Kernel::Nova`](crate::kernel::Kernel::Nova) in numbers: files of the same datasets, and how they are concatenated.
//!
//! Values only; `worker` carries them out. The steps, and the choices in them, are those of Lee and others (2022): sizes are
//! collected from all inputs (step 2 of their workflow), the output and its datasets are created (3 and 4), and dataset by
//! dataset the parts of all inputs are read and written (5).

use serde::{Deserialize, Serialize};

/// A set of files like those of NOvA.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Nova {
    /// Files, dealt to the ranks.
    pub inputs: u64,
    /// Datasets with rows.
    pub datasets: u64,
    /// Datasets without rows, which are most of those of NOvA's files.
    #[serde(default)]
    pub empty: u64,
    /// Mean rows of a dataset per input.
    pub rows: u64,
    /// Values of a row, of 4 bytes: 1 in what the paper calls 1-D datasets.
    pub columns: u64,
    /// Layout of the datasets without rows.
    #[serde(default)]
    pub empty_layout: EmptyLayout,
    /// Metadata blocks of the inputs, in bytes; that of HDF5 without.
    #[serde(default)]
    pub input_meta_block_len_bytes: Option<u64>,
    /// Whether inputs are read into memory when they are opened.
    #[serde(default)]
    pub in_memory: bool,
    /// What ranks share when they read.
    #[serde(default)]
    pub partition: Partition,
    /// Who creates the datasets.
    #[serde(default)]
    pub creation: Creation,
    /// The one step that is measured; all of them without.
    #[serde(default)]
    pub only: Option<Step>,
}

/// Layout of datasets without rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EmptyLayout {
    /// In one piece, HDF5's default.
    #[default]
    Contiguous,
    /// In chunks, with the filters of the other datasets.
    Chunked,
    /// In the object header.
    Compact,
}

/// What ranks share when they read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Partition {
    /// Each reads inputs of its own.
    #[default]
    Files,
    /// Each dataset of each input is read by all of them together.
    Datasets,
}

/// Who creates the datasets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Creation {
    /// All ranks together.
    #[default]
    Collective,
    /// One process; then all ranks open the file and its datasets.
    Single,
}

/// A step that is measured alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Collecting sizes from the inputs.
    Collect,
    /// Creating the datasets of the output, whose sizes are known.
    Create,
}

impl Nova {
    /// Returns the rows of each dataset in `input`. Inputs differ in length, like subruns; their mean is `rows`.
    pub fn rows_of(&self, input: u64) -> u64 {
        let other = self.inputs - 1 - input;
        match input.cmp(&other) {
            std::cmp::Ordering::Less => self.rows - self.rows / 4,
            std::cmp::Ordering::Equal => self.rows,
            std::cmp::Ordering::Greater => self.rows + self.rows / 4,
        }
    }

    /// Where the rows of `input` begin in the output.
    pub fn first_row_of(&self, input: u64) -> u64 {
        (0..input).map(|before| self.rows_of(before)).sum()
    }

    /// Extent of a dataset of the output.
    pub fn dims(&self) -> Vec<u64> {
        vec![self.inputs.saturating_mul(self.rows), self.columns]
    }

    /// Whether inputs are written for it.
    pub fn has_inputs(&self) -> bool {
        self.only != Some(Step::Create)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_all_inputs_are_those_of_the_output() {
        for (inputs, rows) in [(1, 5), (2, 1), (4, 4096), (165, 57_607)] {
            let text = format!("inputs = {inputs}\ndatasets = 1\nrows = {rows}\ncolumns = 1");
            let nova: Nova = toml::from_str(&text).unwrap();
            assert_eq!(nova.first_row_of(inputs), nova.dims()[0], "{inputs} inputs of {rows} rows");
            assert!((0..inputs).all(|input| nova.rows_of(input) > 0));
        }
    }
}
