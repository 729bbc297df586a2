//! Tables of pandas and PyTables: rows are concatenated, if the attributes that describe the columns agree.
//!
//! Tests compare outputs with pandas. Sources: the file format of PyTables 3.11; `pandas.io.pytables` of pandas 2 and
//! 3. Frames in pandas' fixed format, which cannot be extended, are refused (`super::refused`). Invariant: two tables
//! are concatenated only if everything that describes their columns is equal.

use super::{Choice, Completion, Convention, ConventionOptions, FileView, Refusal};
use crate::rules::Rule;
use crate::schema::attribute::{named, number, replaced, with_integers};
use crate::schema::{Role, display_path};

/// The convention of pandas and PyTables.
pub struct Pandas;

/// Attribute of a group that holds a frame or series.
const OF_FRAME: &str = "pandas_type";
/// Attributes that count or describe the contents of one file.
const OF_FILE: [&str; 3] = ["NROWS", "VERSION", "PYTABLES_FORMAT_VERSION"];

impl Convention for Pandas {
    fn choice(&self) -> Choice {
        Choice::Pandas
    }

    fn recognise(&self, file: &FileView<'_>) -> Option<String> {
        if file.has(0, "PYTABLES_FORMAT_VERSION") {
            return Some("attribute PYTABLES_FORMAT_VERSION".to_owned());
        }
        // PyTables does not mark a file that another library created.
        let at = (1..file.len()).find(|&at| file.is_group(at) && file.has(at, OF_FRAME))?;
        Some(format!("{} has an attribute {OF_FRAME}", display_path(file.path_of(at))))
    }

    fn rules(&self, file: &FileView<'_>, _: &ConventionOptions) -> Result<Vec<(usize, Rule)>, Refusal> {
        let mut rules = Vec::new();
        let is_trajectory =
            file.root_text("conventions").is_some_and(|names| names.split(',').any(|name| name.trim() == "Pande"));
        for at in 0..file.len() {
            let path = file.path_of(at);
            let of_pandas = pandas_group(file, path);
            let mut rule = match file.text(at, "CLASS").as_deref() {
                // The categories to which the codes of a column refer.
                Some("TABLE") if of_pandas && is_categories(path) => Rule::strictly_once(),
                // The description of the atoms, of which MDTraj reads the first element.
                Some("ARRAY") if is_trajectory && path == b"/topology" => Rule::strictly_once(),
                Some("EARRAY") => Rule::along(extendable_axis(file, at)),
                _ => Rule::along(0),
            };
            if of_pandas {
                let names = file.attributes(at).iter().map(|attribute| attribute.name.clone());
                rule.attributes.extend(names.filter(|name| !OF_FILE.iter().any(|known| name == known.as_bytes())));
            }
            rules.push((at, rule.ignoring(&OF_FILE)));
        }
        Ok(rules)
    }

    fn complete(&self, completion: &mut Completion<'_>) {
        let schema = &mut *completion.schema;
        for entry in &mut schema.entries {
            let Role::Column(column) = entry.role else { continue };
            let rows = schema.columns[column as usize].rows();
            let counted = named(&entry.attributes, "NROWS").and_then(|known| with_integers(known, &[rows as i64]));
            if let Some(counted) = counted {
                entry.attributes = replaced(&entry.attributes, counted);
            }
        }
    }
}

/// Returns whether the object is, or lies in, a group that pandas wrote.
fn pandas_group(file: &FileView<'_>, path: &[u8]) -> bool {
    let mut ends = (1..=path.len()).filter(|&end| end == path.len() || path[end] == b'/');
    ends.any(|end| file.find(&path[..end]).is_some_and(|at| file.has(at, OF_FRAME)))
}

fn is_categories(path: &[u8]) -> bool {
    let mut names = path.split(|&byte| byte == b'/').rev();
    names.next() == Some(b"table") && names.next() == Some(b"meta")
}

/// Returns the axis along which a PyTables array grows.
fn extendable_axis(file: &FileView<'_>, at: usize) -> usize {
    let rank = file.dims(at).map_or(1, |dims| dims.len());
    let axis = number(file.attributes(at), "EXTDIM").unwrap_or(0.0);
    if axis >= 0.0 && (axis as usize) < rank { axis as usize } else { 0 }
}
