//! Readers that threads borrow one after another, with their open files and decoded chunks.

use crate::write::values::ColumnReader;
use raddle_core::report::StageTable;
use std::sync::{Mutex, PoisonError};

/// Readers that no thread is using.
#[derive(Default)]
pub(crate) struct ReaderPool<'p>(Mutex<Vec<ColumnReader<'p>>>);

impl<'p> ReaderPool<'p> {
    /// Lends a reader to a thread; `new` creates one if none is idle.
    pub(crate) fn lend(&self, new: impl FnOnce() -> ColumnReader<'p>) -> LentReader<'_, 'p> {
        let reader = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        LentReader { reader: Some(reader.unwrap_or_else(new)), values: Vec::new(), pool: self }
    }

    /// Adds the counts of all readers to `stages`. It is called once, when no reader is lent.
    pub(crate) fn retire(&self, stages: &mut StageTable) {
        let readers = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        readers.into_iter().for_each(|reader| reader.retire(stages));
    }
}

/// A reader on loan to a thread, and a buffer for values.
pub(crate) struct LentReader<'a, 'p> {
    /// Reader; `None` only while it is returned.
    reader: Option<ColumnReader<'p>>,
    values: Vec<u8>,
    pool: &'a ReaderPool<'p>,
}

impl<'p> LentReader<'_, 'p> {
    /// Returns the reader and the buffer.
    pub(crate) fn parts(&mut self) -> Option<(&mut ColumnReader<'p>, &mut Vec<u8>)> {
        Some((self.reader.as_mut()?, &mut self.values))
    }
}

impl Drop for LentReader<'_, '_> {
    fn drop(&mut self) {
        self.pool.0.lock().unwrap_or_else(PoisonError::into_inner).extend(self.reader.take());
    }
}
