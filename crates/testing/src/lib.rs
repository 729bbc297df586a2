//! raddle testing.
