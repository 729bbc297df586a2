//! Progress of one of several outputs, as part of the progress of all.

use raddle_core::report::progress::{Event, Observer, Severity, Stage};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// Observer of an output. It passes on processed bytes, and warnings with the name of a file.
pub(crate) struct FileObserver<'a> {
    all: &'a dyn Observer,
    name: &'a Path,
    logical_len_bytes: u64,
    processed_len_bytes: AtomicU64,
    /// Callback after each stage that completes the output. The last call comes before the output is published.
    completed: &'a (dyn Fn() + Sync),
}

impl<'a> FileObserver<'a> {
    pub(crate) fn new(
        all: &'a dyn Observer,
        name: &'a Path,
        logical_len_bytes: u64,
        completed: &'a (dyn Fn() + Sync),
    ) -> Self {
        Self { all, name, logical_len_bytes, processed_len_bytes: AtomicU64::new(0), completed }
    }

    /// Passes on bytes, at most as many as the file has: a file that is written again does not count twice.
    fn advance(&self, len_bytes: u64) {
        let before = self.processed_len_bytes.fetch_add(len_bytes, Ordering::Relaxed).min(self.logical_len_bytes);
        let bytes = len_bytes.min(self.logical_len_bytes - before);
        if bytes > 0 {
            self.all.event(&Event::Advanced { stage: Stage::Encode, bytes, items: 0 });
        }
    }

    /// Passes on the bytes that no event counted, such as those of datasets that are written whole.
    pub(crate) fn finish(&self) {
        self.advance(self.logical_len_bytes);
    }
}

impl Observer for FileObserver<'_> {
    fn event(&self, event: &Event) {
        match event {
            Event::Advanced { stage: Stage::Encode, bytes, .. } => self.advance(*bytes),
            Event::Message { severity: severity @ Severity::Warning, text } => {
                let text = format!("{}: {text}", self.name.display());
                self.all.event(&Event::Message { severity: *severity, text });
            }
            Event::StageFinished { stage: Stage::Commit, .. } => (self.completed)(),
            // Stages of single files overlap, so the times of all would have no meaning.
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[test]
    fn a_file_counts_once() {
        let seen = Mutex::new(Vec::new());
        let all = |event: &Event| seen.lock().unwrap().push(event.clone());
        let completed = AtomicU64::new(0);
        let count = || {
            completed.fetch_add(1, Ordering::Relaxed);
        };
        let file = FileObserver::new(&all, Path::new("a.h5"), 10, &count);
        let advanced = |bytes| Event::Advanced { stage: Stage::Encode, bytes, items: 1 };
        file.event(&advanced(4));
        file.event(&advanced(20));
        file.event(&Event::StageFinished { stage: Stage::Encode, elapsed_s: 1.0 });
        file.event(&Event::StageStarted { stage: Stage::Commit, total_bytes: None });
        file.event(&Event::StageFinished { stage: Stage::Commit, elapsed_s: 1.0 });
        file.event(&Event::Message { severity: Severity::Warning, text: "odd".to_owned() });
        file.finish();
        let expected = [4, 6].map(|bytes| Event::Advanced { stage: Stage::Encode, bytes, items: 0 });
        let warning = Event::Message { severity: Severity::Warning, text: "a.h5: odd".to_owned() };
        assert_eq!(completed.into_inner(), 1);
        assert_eq!(seen.into_inner().unwrap(), expected.into_iter().chain([warning]).collect::<Vec<_>>());
    }
}
