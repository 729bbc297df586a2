//! Environment of a run: its observer, the ranks that share it, and the number of threads that each rank may use.

use crate::error::Error;
use raddle_core::engine::default_jobs;
use raddle_core::ranks::communicator::CommunicatorExt;
use std::fmt;
use std::sync::LazyLock;

pub use raddle_core::cancel::CancelToken;
pub use raddle_core::ranks::communicator::{Communicator, SingleProcess};
pub use raddle_core::report::progress::{Event, Observer, Severity, Silent, Stage, Watch};

/// Environment of a run.
///
/// The default is a single process on all available cores that does not show progress and cannot be stopped.
///
/// ```
/// use raddle::context::{CancelToken, Event, Observer, Watch};
/// use raddle::{Context, MergeRequest};
/// use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
/// # use raddle_testing::plain::make_columns;
/// # let folder = tempfile::tempdir()?;
/// # let (a, all) = (folder.path().join("a.h5"), folder.path().join("all.h5"));
/// # make_columns(&a, &[("/rec/energy", &[1.0, 2.0])])?;
///
/// /// Counts bytes, in all stages.
/// #[derive(Default)]
/// struct Counter(AtomicU64);
///
/// impl Observer for Counter {
///     fn event(&self, event: &Event) {
///         if let Event::Advanced { bytes, .. } = event {
///             self.0.fetch_add(*bytes, Relaxed);
///         }
///     }
/// }
///
/// let (observer, cancel) = (Counter::default(), CancelToken::new());
/// let context = Context::new(Watch { observer: &observer, cancel: &cancel });
/// let planned = MergeRequest::new([a], &all).plan(&context)?;
/// cancel.cancel(); // from any thread, at any time
/// assert_eq!(planned.run(&context).unwrap_err().kind(), "interrupted");
/// assert!(!all.exists());
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// Observer of progress, and cancellation.
    pub watch: Watch<'a>,
    /// Ranks that share the work. All of them must make the same calls in the same order.
    pub ranks: &'a dyn Communicator,
    /// Number of threads unless a request names one.
    pub default_jobs: usize,
}

impl Default for Context<'_> {
    fn default() -> Self {
        static NEVER: LazyLock<CancelToken> = LazyLock::new(CancelToken::new);
        Self::new(Watch { observer: &Silent, cancel: &NEVER })
    }
}

impl<'a> Context<'a> {
    /// Creates the context of a single process.
    pub fn new(watch: Watch<'a>) -> Self {
        Self { watch, ranks: &SingleProcess, default_jobs: default_jobs() }
    }

    /// Returns whether this is the first rank, which reports for all.
    pub fn leads(&self) -> bool {
        self.ranks.rank() == 0
    }

    /// Collective. Runs a step on the first rank. If it fails there, it fails on every rank; otherwise the other ranks get
    /// the default value.
    pub(crate) fn on_first<T: Default>(
        &self,
        step: &'static str,
        run: impl FnOnce() -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.ranks.agree(step, if self.leads() { run() } else { Ok(T::default()) })
    }

    /// Collective. Returns the options of a request if every rank could read them: files of rules and layouts may be
    /// missing on some machines.
    pub(crate) fn agree_on_options<T>(&self, local: Result<T, Error>) -> Result<T, Error> {
        self.ranks.agree("read the options", local)
    }

    /// Sends a warning to the observer.
    pub fn warn(&self, text: String) {
        self.watch.warn(text);
    }
}

impl fmt::Debug for Context<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { watch, ranks, default_jobs } = self;
        let ranks = (ranks.rank(), ranks.size());
        formatter
            .debug_struct("Context")
            .field("watch", watch)
            .field("ranks", &ranks)
            .field("default_jobs", default_jobs)
            .finish()
    }
}
