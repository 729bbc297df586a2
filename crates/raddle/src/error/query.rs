//! Errors of queries.

use super::Error;
use crate::exit::Exit;
use raddle_core::CoreError;
use raddle_core::output::LockError;
use raddle_core::output::publish::PublishError;
use raddle_query::QueryError;

impl Error {
    /// Converts the error of a query or an index.
    pub fn of_query(error: &QueryError) -> Self {
        let exit = match error {
            QueryError::Hdf5(error) => return Self::of_file(error),
            QueryError::Core(CoreError::Cancelled) => return Self::new(Exit::Interrupted, "stopped before the end"),
            QueryError::Core(CoreError::Memory { .. } | CoreError::Threads { .. }) => Exit::Limit,
            QueryError::Core(_) => Exit::Internal,
            QueryError::Index { .. } | QueryError::Packed { .. } | QueryError::Undecodable { .. } => Exit::InputRefused,
            QueryError::Publish(PublishError::Lock(LockError::Held { .. })) => Exit::Locked,
            QueryError::Output { .. } | QueryError::Publish(_) => Exit::Output,
            _ => Exit::Usage,
        };
        let refused = Self::new(exit, &error.to_string());
        match error.hint() {
            Some(hint) => refused.hint(hint),
            None => refused,
        }
    }
}
