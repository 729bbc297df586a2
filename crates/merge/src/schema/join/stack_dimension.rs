//! Dimension of the scalars of netCDF files that become datasets with one element per input (`--scalars stack`).
//!
//! Some netCDF readers refuse files with a variable that has an axis without a dimension. Ids of dimensions are
//! assigned when the rules are settled. Invariant: the dimension has no variable, and no object of an input has its
//! name.

use super::Joiner;
use super::attribute_rows::NewDataset;
use crate::scan::scale_lists::with_first_scale;
use crate::schema::AttributeValue;
use crate::schema::attribute::{fixed_text, replaced, text_without_variable};
use crate::verify::provenance::dimensions::class_of_dimensions;

/// Name of the dimension, unless an object has it.
const NAME: &[u8] = b"input";

impl Joiner {
    /// Adds the dimension to the root group, and attaches it to the entries at `stacks`.
    pub(super) fn add_stack_dimension(&mut self, stacks: &[usize]) {
        let mut path = [b"/", NAME].concat();
        while self.entries.iter().any(|joined| joined.entry.path == path) {
            path.push(b'_');
        }
        let inputs = self.inputs;
        for &at in stacks {
            let attributes = &mut self.entries[at].entry.attributes;
            *attributes = replaced(attributes, with_first_scale(None, &path, 1));
        }
        let class = class_of_dimensions();
        let row = vec![0; class.len_bytes() as usize];
        let dataset = NewDataset { class, dims: Vec::new(), rows: vec![row; inputs as usize] };
        self.put(path, dataset, vec![1; inputs as usize], false);
        let name = fixed_text("NAME", text_without_variable(u64::from(inputs)).as_bytes());
        let attributes: [AttributeValue; 2] = [fixed_text("CLASS", b"DIMENSION_SCALE"), name];
        if let Some(dimension) = self.entries.last_mut() {
            dimension.entry.attributes = attributes.into();
        }
    }
}
