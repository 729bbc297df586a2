//! Values that requests and reports hold as text: serde reads and writes them as the command does.

use super::sizes::{AxisRange, BoxSize, Shape};
use super::words::OutputCompression;
use crate::dataset::bitmask::Bitmask;
use crate::dataset::sample::{Number, SampleType};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

macro_rules! serialize_as_text {
    ($($type:ty),+) => {$(
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
            }
        }
    )+};
}

serialize_as_text!(AxisRange, Bitmask, BoxSize, Number, OutputCompression, SampleType, Shape);
