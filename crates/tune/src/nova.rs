//! Parameters of [`Kernel::Nova`](crate::kernel::Kernel::Nova): files with the same datasets, and how they are
//! concatenated.
//!
//! This module holds plain data; `worker` runs the kernel. Steps and options follow Lee and others (2022): sizes are
//! collected from all inputs (step 2 of their workflow), the output and its datasets are created (steps 3 and 4), and
//! dataset by dataset the parts of all inputs are read and written (step 5).

use serde::{Deserialize, Serialize};

/// A set of files like those of NOvA.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Nova {
    /// Number of files, dealt to the ranks.
    pub inputs: u64,
    /// Number of datasets with rows.
    pub datasets: u64,
    /// Number of datasets without rows, the majority in NOvA's files.
    #[serde(default)]
    pub empty: u64,
    /// Mean number of rows of a dataset per input.
    pub rows: u64,
    /// Number of values per row, of 4 bytes: 1 for the datasets that the paper calls 1-D.
    pub columns: u64,
    /// Layout of the datasets without rows.
    #[serde(default)]
    pub empty_layout: EmptyLayout,
    /// Size of the inputs' metadata blocks, in bytes; `None`: HDF5's default.
    #[serde(default)]
    pub input_meta_block_len_bytes: Option<u64>,
    /// Whether inputs are read into memory when they are opened.
    #[serde(default)]
    pub in_memory: bool,
    /// Assignment of the reading to ranks.
    #[serde(default)]
    pub partition: Partition,
    /// Way in which the datasets are created.
    #[serde(default)]
    pub creation: Creation,
    /// The only step to measure; `None` stands for all steps.
    #[serde(default)]
    pub only: Option<Step>,
}

/// Layout of datasets without rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EmptyLayout {
    /// Contiguous, HDF5's default.
    #[default]
    Contiguous,
    /// Chunked, with the filters of the other datasets.
    Chunked,
    /// Compact storage, in the object header.
    Compact,
}

/// Assignment of the reading to ranks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Partition {
    /// Each rank reads different inputs.
    #[default]
    Files,
    /// All ranks read each dataset of each input together.
    Datasets,
}

/// Way in which the datasets are created.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Creation {
    /// Creation by all ranks collectively.
    #[default]
    Collective,
    /// Creation by one process; then all ranks open the file and its datasets.
    Single,
}

/// A step that is measured separately.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Collecting sizes from the inputs.
    Collect,
    /// Creating the datasets of the output, with known sizes.
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

    /// Returns the first row in the output of the rows of `input`.
    pub fn first_row_of(&self, input: u64) -> u64 {
        (0..input).map(|before| self.rows_of(before)).sum()
    }

    /// Returns the extent of a dataset of the output.
    pub fn dims(&self) -> Vec<u64> {
        vec![self.inputs.saturating_mul(self.rows), self.columns]
    }

    /// Returns whether the kernel needs input files.
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
