//! Options by name: the options of the command `raddle idx write`, with the same values.

use crate::fault::CallError;
use raddle_core::engine::jobs_per_rank;
use raddle_core::size::Size;
use raddle_idx::dataset::bitmask::Bitmask;
use raddle_idx::dataset::grid::Layout;
use raddle_idx::dataset::vectors::SplitVectors;
use raddle_idx::write::restructure::ImposedBox;
use raddle_idx::{Durability, IfExists, LayoutOptions, Phases, WriteOptions};
use std::num::NonZeroUsize;
use std::str::FromStr;

/// Names of the options, for messages.
const KNOWN: &str = "compress, order, bitmask, bits-per-block, blocks-per-file, split-vectors, phases, box, aggregators, jobs, \
                     memory, force, append and no-sync";

const POSITIVE: &str = "a whole number above 0";

/// Selected options.
#[derive(Debug, Clone)]
pub struct Options {
    /// Options of the dataset.
    pub layout: LayoutOptions,
    /// Options of writing.
    pub write: WriteOptions,
    /// Whether steps are added to an existing dataset.
    pub append: bool,
}

impl Options {
    /// Creates the default options for one of `ranks` ranks.
    pub fn new(ranks: usize) -> Self {
        let jobs = jobs_per_rank(ranks).get();
        let write = WriteOptions { jobs, ..WriteOptions::default() };
        Self { layout: LayoutOptions::default(), write, append: false }
    }

    /// Sets an option.
    ///
    /// # Errors
    /// If the option does not exist or does not accept this value.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), CallError> {
        match name {
            "compress" => {
                let wanted = "zip, lz4, none, zfp, zfp:precision=N or zfp:accuracy=X";
                let fault = |_| CallError::OptionValue { name: "compress", value: value.to_owned(), wanted };
                self.layout.compression = value.parse().map_err(fault)?;
            }
            "order" => {
                self.layout.order = of("order", value, &[("rows", Layout::RowMajor), ("hz", Layout::Hz)], "rows or hz")?
            }
            "bitmask" => {
                let wanted = "V and the axis that each level splits, such as V012012012";
                let fault = |_| CallError::OptionValue { name: "bitmask", value: value.to_owned(), wanted };
                self.layout.bitmask = Some(Bitmask::parse(value).map_err(fault)?);
            }
            "bits-per-block" => self.layout.bits_per_block = Some(number("bits-per-block", value, "a whole number")?),
            "blocks-per-file" => {
                self.layout.blocks_per_file = Some(number("blocks-per-file", value, "a whole number")?)
            }
            "split-vectors" => {
                let which = [("never", SplitVectors::Never), ("wide", SplitVectors::Wide), ("all", SplitVectors::All)];
                self.layout.split_vectors = of("split-vectors", value, &which, "never, wide or all")?;
            }
            "phases" => {
                let phases = [("one", Phases::One), ("two", Phases::Two), ("three", Phases::Three)];
                self.write.phases = of("phases", value, &phases, "one, two or three")?;
            }
            "box" => {
                let boxes =
                    [("default", ImposedBox::Default), ("expanded", ImposedBox::Expanded), ("cube", ImposedBox::Cube)];
                let wanted = "default, expanded or cube; raddle_idx_set_imposed_box takes a size";
                self.write.imposed = of("box", value, &boxes, wanted)?;
            }
            "aggregators" => self.write.aggregators = Some(number("aggregators", value, POSITIVE)?),
            "jobs" => self.write.jobs = number::<NonZeroUsize>("jobs", value, POSITIVE)?.get(),
            "memory" => {
                let wanted = "a size such as 512MiB or 2GB";
                let size = value.parse::<Size>();
                let fault = |_| CallError::OptionValue { name: "memory", value: value.to_owned(), wanted };
                self.write.memory_limit_bytes = size.map_err(fault)?.0;
            }
            "force" => {
                let force = switch("force", value)?;
                self.write.existing = if force { IfExists::Replace } else { IfExists::Fail };
            }
            "append" => self.append = switch("append", value)?,
            "no-sync" => {
                let no_sync = switch("no-sync", value)?;
                self.write.durability = if no_sync { Durability::Unsynced } else { Durability::Synced };
            }
            _ => return Err(CallError::NoOption { name: name.to_owned(), known: KNOWN }),
        }
        Ok(())
    }
}

fn of<T: Copy>(name: &'static str, value: &str, known: &[(&str, T)], wanted: &'static str) -> Result<T, CallError> {
    let found = known.iter().find(|(known, _)| *known == value);
    found.map(|(_, value)| *value).ok_or_else(|| CallError::OptionValue { name, value: value.to_owned(), wanted })
}

fn switch(name: &'static str, value: &str) -> Result<bool, CallError> {
    of(name, value, &[("true", true), ("false", false)], "true or false")
}

fn number<T: FromStr>(name: &'static str, value: &str, wanted: &'static str) -> Result<T, CallError> {
    value.parse().map_err(|_| CallError::OptionValue { name, value: value.to_owned(), wanted })
}

#[cfg(test)]
mod tests {
    use super::*;
    use raddle_idx::dataset::compression::Compression;

    #[test]
    fn options_are_those_of_the_command() {
        let mut options = Options::new(1_000_000);
        assert_eq!(options.write.jobs, 1);
        for (name, value) in [
            ("compress", "none"),
            ("order", "hz"),
            ("bitmask", "V1010"),
            ("bits-per-block", "12"),
            ("blocks-per-file", "64"),
            ("split-vectors", "wide"),
            ("phases", "two"),
            ("box", "expanded"),
            ("aggregators", "2"),
            ("jobs", "3"),
            ("memory", "64MiB"),
            ("force", "true"),
            ("append", "true"),
            ("no-sync", "true"),
        ] {
            options.set(name, value).unwrap();
            assert!(KNOWN.split(", ").any(|known| known.split(" and ").any(|known| known == name)), "{name}");
        }
        let layout = LayoutOptions {
            compression: Compression::None,
            order: Layout::Hz,
            bitmask: Some(Bitmask::parse("V1010").unwrap()),
            bits_per_block: Some(12),
            blocks_per_file: Some(64),
            split_vectors: SplitVectors::Wide,
        };
        assert_eq!(options.layout, layout);
        let write = &options.write;
        assert_eq!((write.jobs, write.memory_limit_bytes, write.existing), (3, 64 << 20, IfExists::Replace));
        assert_eq!((write.phases, write.imposed), (Phases::Two, ImposedBox::Expanded));
        assert_eq!(write.durability, Durability::Unsynced);
        options.set("no-sync", "false").unwrap();
        let write = &options.write;
        assert_eq!(write.durability, Durability::Synced);
        assert_eq!((write.aggregators.map(NonZeroUsize::get), options.append), (Some(2), true));
    }

    #[test]
    fn others_are_refused_with_what_there_is() {
        let mut options = Options::new(1);
        for (name, value, says) in [
            ("compres", "zip", "options are compress"),
            ("compress", "png", "zip, lz4, none, zfp, zfp:precision=N or zfp:accuracy=X"),
            ("order", "", "rows or hz"),
            ("jobs", "0", "above 0"),
            ("bitmask", "V1017", "such as V012012012"),
            ("bits-per-block", "-1", "whole number"),
            ("split-vectors", "5", "never, wide or all"),
            ("box", "8x8x8", "raddle_idx_set_imposed_box"),
            ("force", "yes", "true or false"),
            ("no-sync", "1", "true or false"),
            ("memory", "much", "512MiB"),
        ] {
            let fault = options.set(name, value).unwrap_err().to_string();
            assert!(fault.contains(says), "{fault}");
        }
    }
}
