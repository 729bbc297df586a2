//! raddle core.
