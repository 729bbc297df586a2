//! Counting of selected elements, after which the merge is planned a second time.

use crate::error::Result;
use crate::options::Watch;
use crate::plan::MergePlan;
use crate::rules::pick::{BLOCK_ELEMENTS, SelectedCounts, UncountedElements, taken};
use crate::write::picking::{beyond, column_at};
use crate::write::values::{ColumnReader, open_pool};

/// Counts the selected elements of the inputs of `plan`.
pub(crate) fn count(plan: &MergePlan, uncounted: &[UncountedElements], watch: &Watch<'_>) -> Result<SelectedCounts> {
    let pool = open_pool(plan);
    let mut reader = ColumnReader::new(plan, &pool);
    let mut counts = SelectedCounts::new();
    for one in uncounted {
        let column = column_at(plan, &one.numbers)?;
        let rows = plan.schema.columns[column as usize].facts[one.input as usize].rows;
        let (mut before, mut sum) = (vec![0], 0);
        let (mut bytes, mut scratch, mut is_taken) = (Vec::new(), Vec::new(), Vec::new());
        for start in (0..rows).step_by(BLOCK_ELEMENTS as usize) {
            watch.cancel.check()?;
            let elements = BLOCK_ELEMENTS.min(rows - start);
            let class = reader.read_stored(column, one.input, start, elements, &mut bytes)?;
            let found = taken(&one.is_taken, &class, &bytes, &mut scratch, &mut is_taken);
            found.map_err(|number| beyond(plan, column, one.input, number))?;
            sum += is_taken.iter().filter(|&&taken| taken).count() as u64;
            before.push(sum);
        }
        counts.insert((one.numbers.clone(), one.input), before.into());
    }
    Ok(counts)
}
