//! Places of tiles as users specify them: by a pattern of file names, or by a table.
//!
//! Invariant: every input has one place along each dimension that the pattern or the table names, or the inputs are
//! refused.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;
use std::str::FromStr;

/// Source of the positions of files that are tiles of a larger grid.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Tiles {
    /// Attributes of models that write tiles, or coordinates.
    Contents,
    /// Names of the files.
    Names(NamePattern),
    /// Table of the first elements of each file.
    Table(TileTable),
}

impl Tiles {
    /// Returns the dimensions that a pattern or a table names.
    pub(crate) fn dimensions(&self) -> &[String] {
        match self {
            Self::Contents => &[],
            Self::Names(pattern) => &pattern.dimensions,
            Self::Table(table) => &table.dimensions,
        }
    }

    /// Returns where each input lies along dimension number `at`, for inputs with `counts` elements along it.
    ///
    /// # Errors
    /// If an input has no place. The error names the input and the reason.
    pub(crate) fn starts(&self, at: usize, paths: &[&Path], counts: &[u64]) -> Result<Vec<u64>, (usize, String)> {
        match self {
            Self::Contents => Ok(vec![0; paths.len()]),
            Self::Names(pattern) => pattern.starts(at, paths, counts),
            Self::Table(table) => table.starts(at, paths),
        }
    }
}

/// Pattern of file names, such as `tile_{y}_{x}.nc`: the text in place of a dimension is the index of the tile along
/// it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct NamePattern {
    /// Text before the first dimension, and after each.
    literals: Vec<String>,
    dimensions: Vec<String>,
}

impl FromStr for NamePattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let fault = |reason: &str| Err(format!("{text:?}: {reason}; expected a pattern such as 'tile_{{y}}_{{x}}.nc'"));
        let (mut literals, mut dimensions, mut rest) = (Vec::new(), Vec::new(), text);
        while let Some((literal, after)) = rest.split_once('{') {
            let Some((dimension, after)) = after.split_once('}') else { return fault("a brace is not closed") };
            if dimension.is_empty() || dimensions.iter().any(|known| known == dimension) {
                return fault("each dimension has a name and occurs once");
            }
            if literal.is_empty() && !dimensions.is_empty() {
                return fault("two dimensions need a separator between them");
            }
            literals.push(literal.to_owned());
            dimensions.push(dimension.to_owned());
            rest = after;
        }
        if dimensions.is_empty() || rest.contains('}') {
            return fault("it names no dimension in braces");
        }
        literals.push(rest.to_owned());
        Ok(Self { literals, dimensions })
    }
}

impl fmt::Display for NamePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.literals[0])?;
        for (dimension, literal) in self.dimensions.iter().zip(&self.literals[1..]) {
            write!(f, "{{{dimension}}}{literal}")?;
        }
        Ok(())
    }
}

raddle_core::serde_as_text!(NamePattern);

impl NamePattern {
    /// Returns the strings in place of the dimensions in the name of a file, or in the last parts of its path if the
    /// pattern has a slash.
    fn indices<'p>(&self, path: &'p Path) -> Option<Vec<&'p str>> {
        let has_slash = self.literals.iter().any(|literal| literal.contains('/'));
        let text = if has_slash { path.to_str()? } else { path.file_name()?.to_str()? };
        let parts = std::iter::once(0).chain(text.match_indices('/').map(|(at, _)| at + 1));
        parts.filter_map(|start| text[start..].strip_prefix(self.literals[0].as_str())).find_map(|rest| {
            let mut found = Vec::new();
            self.find(0, rest, &mut found).then_some(found)
        })
    }

    /// Finds the strings of the dimensions, starting with number `at`.
    fn find<'p>(&self, at: usize, rest: &'p str, found: &mut Vec<&'p str>) -> bool {
        let Some(literal) = self.literals.get(at + 1) else { return rest.is_empty() };
        let is_last = at + 1 == self.dimensions.len();
        for (end, _) in rest.char_indices().skip(1).chain([(rest.len(), ' ')]) {
            let (index, after) = rest.split_at(end);
            if index.is_empty() || index.contains('/') {
                continue;
            }
            let Some(after) = after.strip_prefix(literal.as_str()) else { continue };
            found.push(index);
            if if is_last { after.is_empty() } else { self.find(at + 1, after, found) } {
                return true;
            }
            found.pop();
        }
        false
    }

    fn starts(&self, at: usize, paths: &[&Path], counts: &[u64]) -> Result<Vec<u64>, (usize, String)> {
        let dimension = &self.dimensions[at];
        let mut indices = Vec::new();
        for (input, path) in paths.iter().enumerate() {
            match self.indices(path) {
                Some(found) => indices.push(found[at].to_owned()),
                None => return Err((input, format!("a name that does not match '{self}'"))),
            }
        }
        let are_counted = indices.iter().all(|index| index.bytes().all(|byte| byte.is_ascii_digit()));
        let are_decimals = indices.iter().all(|index| decimal(index).is_some());
        let key = |index: &String| match are_counted {
            true => (index.parse::<u64>().unwrap_or(u64::MAX), String::new()),
            false if are_decimals => (decimal(index).map_or(0, sortable), String::new()),
            false => (0, index.clone()),
        };
        let mut sizes: BTreeMap<(u64, String), (u64, usize)> = BTreeMap::new();
        for (input, (index, &count)) in indices.iter().zip(counts).enumerate() {
            let (known, first) = *sizes.entry(key(index)).or_insert((count, input));
            if known != count {
                let other = paths[first].display();
                return Err((
                    input,
                    format!("{count} elements along {dimension:?}, but {other} has {known} at the same place"),
                ));
            }
        }
        let mut start_of = BTreeMap::new();
        let (mut start, mut before): (u64, Option<u64>) = (0, None);
        for (key, (count, input)) in &sizes {
            if let Some(before) = before.filter(|before| are_counted && before + 1 != key.0) {
                let reason = format!(
                    "number {} along {dimension:?} after {before}; without the tiles between, its place is unknown: \
                     give a table (--tiles=@FILE)",
                    key.0
                );
                return Err((*input, reason));
            }
            before = Some(key.0);
            start_of.insert(key.clone(), start);
            start = start.saturating_add(*count);
        }
        Ok(indices.iter().map(|index| start_of.get(&key(index)).copied().unwrap_or(0)).collect())
    }
}

/// Parses a decimal number with an optional sign, such as `-30` or `7.5`.
fn decimal(text: &str) -> Option<f64> {
    let is_decimal = text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.".contains(&byte));
    text.parse().ok().filter(|_| is_decimal)
}

/// Returns a number that sorts as the float does.
fn sortable(value: f64) -> u64 {
    // Makes -0 equal to 0.
    let bits = (value + 0.0).to_bits();
    if bits >> 63 == 0 { bits | 1 << 63 } else { !bits }
}

/// Table with the first element of each file along some dimensions, counted from 0.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TileTable {
    dimensions: Vec<String>,
    /// Paths of the files, or their last components, with the first elements.
    rows: Vec<(String, Vec<u64>)>,
}

impl FromStr for TileTable {
    type Err = String;

    /// Parses a table of comma-separated values. The first line is a header: a name for the column of paths, then the
    /// names of the dimensions.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let cells = |line: &str| line.split(',').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
        let (_, header) = lines.next().ok_or("the table is empty; expected a line such as 'path,y,x'")?;
        let dimensions = cells(header)[1..].to_vec();
        let distinct: BTreeSet<&String> = dimensions.iter().collect();
        if dimensions.is_empty() || distinct.len() < dimensions.len() || dimensions.iter().any(String::is_empty) {
            return Err(format!("line 1: {header:?} does not name a dimension per column, as in 'path,y,x'"));
        }
        let mut rows = Vec::new();
        for (number, line) in lines {
            let cells = cells(line);
            let starts: Option<Vec<u64>> = cells[1..].iter().map(|cell| cell.parse().ok()).collect();
            let starts = starts.filter(|starts| starts.len() == dimensions.len() && !cells[0].is_empty());
            let starts = starts.ok_or_else(|| {
                format!("line {}: expected a path and {} numbers, found {line:?}", number + 1, dimensions.len())
            })?;
            rows.push((cells[0].clone(), starts));
        }
        Ok(Self { dimensions, rows })
    }
}

impl TileTable {
    fn starts(&self, at: usize, paths: &[&Path]) -> Result<Vec<u64>, (usize, String)> {
        let start = |(input, path): (usize, &&Path)| {
            let mut rows = self.rows.iter().filter(|(of_row, _)| path.ends_with(Path::new(of_row)));
            match (rows.next(), rows.next()) {
                (Some((_, starts)), None) => Ok(starts[at]),
                (None, _) => Err((input, "no line in the table".to_owned())),
                (Some(_), Some(_)) => Err((input, "more than one line in the table".to_owned())),
            }
        };
        paths.iter().enumerate().map(start).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> NamePattern {
        text.parse().unwrap()
    }

    fn starts(text: &str, at: usize, names: &[&str], counts: &[u64]) -> Result<Vec<u64>, (usize, String)> {
        let paths: Vec<&Path> = names.iter().map(Path::new).collect();
        pattern(text).starts(at, &paths, counts)
    }

    #[test]
    fn names_are_taken_apart() {
        let found = |text: &str, name: &str| {
            pattern(text).indices(Path::new(name)).map(|found| found.into_iter().map(str::to_owned).collect::<Vec<_>>())
        };
        let two = |one: &str, other: &str| Some(vec![one.to_owned(), other.to_owned()]);
        assert_eq!(found("tile_{y}_{x}.nc", "/a/b/tile_3_11.nc"), two("3", "11"));
        assert_eq!(found("{y}-{x}", "a-b-c"), two("a", "b-c"));
        assert_eq!(found("run{y}/{x}.nc", "/data/run2/5.nc"), two("2", "5"));
        assert_eq!(found("tile_{y}_{x}.nc", "tile_3.nc"), None);
        assert_eq!(found("tile_{y}.nc", "tile_.nc"), None);
        assert_eq!(found("tile_{y}.nc", "tile_1.nc4"), None);
        for text in ["tile.nc", "{}", "{y}{x}", "{y}_{y}", "{y", "y}"] {
            assert!(text.parse::<NamePattern>().is_err(), "{text}");
        }
        assert_eq!(pattern("a{y}_{x}.nc").to_string(), "a{y}_{x}.nc");
    }

    #[test]
    fn numbers_and_words_are_places() {
        let names = ["t_10_a", "t_9_b", "t_9_a"];
        assert_eq!(starts("t_{y}_{x}", 0, &names, &[2, 5, 5]), Ok(vec![5, 0, 0]));
        assert_eq!(starts("t_{y}_{x}", 1, &names, &[4, 3, 4]), Ok(vec![0, 4, 0]));
        assert!(starts("t_{y}_{x}", 1, &names, &[4, 3, 5]).unwrap_err().1.contains("5 elements"));
        assert!(starts("t_{y}", 0, &["t_1", "t_3"], &[1, 1]).unwrap_err().1.contains("number 3"));
        assert_eq!(starts("t_{y}", 0, &["t_1", "u_2"], &[1, 1]).unwrap_err().0, 1);
    }

    #[test]
    fn tables_are_read() {
        let table: TileTable = "path, y, x\na/0.nc, 0, 4\n\n1.nc,2,0\n".parse().unwrap();
        let starts = |at, names: &[&str]| table.starts(at, &names.iter().map(Path::new).collect::<Vec<_>>());
        assert_eq!(starts(1, &["/z/a/0.nc", "b/1.nc"]), Ok(vec![4, 0]));
        assert_eq!(starts(0, &["b/0.nc"]).unwrap_err(), (0, "no line in the table".to_owned()));
        for text in ["", "path\n", "path,y\n0.nc\n", "path,y\n0.nc,a\n", "path,y,y\n", "path,y\n0.nc,1,2\n"] {
            assert!(text.parse::<TileTable>().is_err(), "{text:?}");
        }
        let tiles = Tiles::Table(table);
        let text = serde_json::to_string(&tiles).unwrap();
        assert_eq!(serde_json::from_str::<Tiles>(&text).unwrap(), tiles);
    }
}
