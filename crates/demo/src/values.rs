//! Values of generated columns, from distributions that compress like NOvA's columns.
//!
//! Target rates at 1 MiB and zlib level 6: integers about 8 to 1, floats about 2.9 to 1, maps several hundred to 1
//! (with the inputs' 128 rows, a column compresses to about three quarters of that). The tests of [`crate::generate`]
//! check the mix against these rates. Values depend only on seed, file, table and column, never on threads.

use raddle_core::random::Random;
use raddle_hdf5::default_format::Element;

/// Rows of one table in one file, given by the event of each row.
#[derive(Debug, Clone, Default)]
pub struct TableRows {
    /// Index into the file's events for each row, non-decreasing.
    pub event_of_row: Vec<u32>,
}

/// Identifiers of a file, stored in its key columns.
#[derive(Debug, Clone)]
pub struct FileKeys {
    /// Run number.
    pub run: u32,
    /// Subrun number.
    pub subrun: u32,
    /// Event numbers, ascending.
    pub events: Vec<u32>,
}

/// The law of a column's values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Law {
    /// Run number of the file.
    Run,
    /// Subrun number of the file.
    Subrun,
    /// Event number of the row.
    Event,
    /// Position of the row among its event's rows, from 1.
    Subevent,
    /// The same integer in all rows.
    Constant(i32),
    /// 0 or 1; 1 with this probability.
    Flag(f64),
    /// Counts with this mean; small counts are the most likely.
    Count(f64),
    /// One of a few codes (particle kinds); the first ones are the most likely.
    Code(&'static [i32]),
    /// Mostly the default -5, otherwise a number below 1000; the parameter is the probability of the default.
    RareInteger(f64),
    /// Normally distributed, with a random mantissa: hardly compressible.
    Measured {
        /// Mean.
        mean: f64,
        /// Standard deviation.
        deviation: f64,
    },
    /// Mostly the default -5, otherwise normally distributed around 50; the parameter is the probability of the
    /// default.
    RareFloat(f64),
    /// 1000 k / n of small integers: a few hundred distinct values.
    Fraction,
    /// One measured value per event, repeated in its rows.
    OfEvent,
    /// A value on a grid of 1/16.
    Gridded,
    /// Maps: each row is an image, mostly zeros, with short tracks; see [`fill_map_row`].
    Map {
        /// Mean number of tracks in a row that has any.
        tracks: f64,
    },
}

/// Particle codes (Monte Carlo numbering scheme of the Particle Data Group), most likely first.
pub const PARTICLES: &[i32] = &[13, 2212, 211, 2112, 11, 22, -13, -211, 111, -11];

/// Appends the values of a column of width 1 for all rows of a table.
pub fn fill_column(
    law: Law,
    element: Element,
    keys: &FileKeys,
    rows: &TableRows,
    random: &mut Random,
    out: &mut Vec<u8>,
) {
    let mut last_event = None;
    let mut in_event = 0_u32;
    let mut of_event = 0.0;
    for &event in &rows.event_of_row {
        if last_event == Some(event) {
            in_event += 1;
        } else {
            (last_event, in_event) = (Some(event), 1);
            of_event = 120.0 + 60.0 * random.normal();
        }
        let value = match law {
            Law::Run => f64::from(keys.run),
            Law::Subrun => f64::from(keys.subrun),
            Law::Event => f64::from(keys.events[event as usize]),
            Law::Subevent => f64::from(in_event),
            Law::OfEvent => of_event,
            Law::Map { .. } => 0.0,
            other => draw(other, random),
        };
        push(element, value, out);
    }
}

/// Draws a value that does not depend on the row's event.
fn draw(law: Law, random: &mut Random) -> f64 {
    match law {
        Law::Constant(value) => f64::from(value),
        Law::Flag(probability) => f64::from(u8::from(random.chance(probability))),
        Law::Count(mean) => random.geometric(mean) as f64,
        Law::Code(codes) => {
            let last = codes.len().saturating_sub(1);
            codes.get((random.geometric(1.6) as usize).min(last)).map_or(0.0, |&code| f64::from(code))
        }
        Law::RareInteger(default) => {
            if random.chance(default) {
                -5.0
            } else {
                random.below(1000) as f64
            }
        }
        Law::Measured { mean, deviation } => mean + deviation * random.normal(),
        Law::RareFloat(default) => {
            if random.chance(default) {
                -5.0
            } else {
                50.0 + 20.0 * random.normal()
            }
        }
        Law::Fraction => {
            let whole = 2 + random.geometric(12.0);
            1000.0 * (1 + random.below(whole.min(4))) as f64 / whole as f64
        }
        Law::Gridded => (40.0 * random.normal()).round() / 16.0,
        Law::Run | Law::Subrun | Law::Event | Law::Subevent | Law::OfEvent | Law::Map { .. } => 0.0,
    }
}

/// Appends one value; for integers it is truncated and clipped to their range (a float cast saturates).
fn push(element: Element, value: f64, out: &mut Vec<u8>) {
    match element {
        Element::U8 => out.push(value as u8),
        Element::U16 => out.extend_from_slice(&(value as u16).to_le_bytes()),
        Element::U32 => out.extend_from_slice(&(value as u32).to_le_bytes()),
        Element::I32 => out.extend_from_slice(&(value as i32).to_le_bytes()),
        Element::I64 => out.extend_from_slice(&(value as i64).to_le_bytes()),
        Element::F32 => out.extend_from_slice(&(value as f32).to_le_bytes()),
        Element::F64 => out.extend_from_slice(&value.to_le_bytes()),
    }
}

/// Length of a track in cells of a map; NOvA's planes are 80 cells wide, and hits of a track are close together.
const TRACK_LEN_CELLS: f64 = 3.0;

/// Share of slices without any hit in a map.
const EMPTY_ROW_PROBABILITY: f64 = 0.4;

/// Draws one row of a map into `row`, which must be zeroed.
pub fn fill_map_row(tracks: f64, element: Element, random: &mut Random, row: &mut [u8]) {
    let cells = row.len() / element.len_bytes();
    if cells == 0 || random.chance(EMPTY_ROW_PROBABILITY) {
        return;
    }
    let mut hit = Vec::with_capacity(8);
    for _ in 0..=random.geometric(tracks - 1.0) {
        let start = random.below(cells as u64) as usize;
        let len = 1 + random.geometric(TRACK_LEN_CELLS - 1.0) as usize;
        for cell in start..(start + len).min(cells) {
            // Charges are multiples of a sixteenth of the scale: the maps are normalised images, not raw readings.
            let charge = 1 + random.below(15);
            hit.clear();
            match element {
                Element::U8 => hit.push((charge * 16) as u8),
                element => push(element, charge as f64 / 16.0, &mut hit),
            }
            row[cell * element.len_bytes()..][..element.len_bytes()].copy_from_slice(&hit);
        }
    }
}
