//! raddle merge.
