//! AnnData (`.h5ad`): concatenation of observations or variables, as by `anndata.concat`.
//!
//! Tests compare outputs, as read by anndata, with `anndata.concat`. The treatment of an element depends on all inputs
//! (genes in common, categories, keys), so inputs are not joined path by path: [`Files`] keeps them as trees, from
//! which [`join`] creates the schema of the output. Sources: the on-disk format of anndata 0.12 and `anndata.concat`
//! (docs/internals/conventions.md). Invariant: an element with an unsupported encoding is refused, never copied.

mod across;
mod along;
mod compressed;
mod equality;
mod items;
mod join;
mod names;
mod output;
mod repeated;
mod tree;
mod value;

pub(crate) use join::join;
pub(crate) use repeated::repeated;
pub(crate) use tree::Files;

use super::{Axis, Choice, Convention, ConventionOptions, FileView, Refusal};
use crate::rules::{Rule, ValueMeaning};
use crate::schema::display_path;
use crate::schema::join::{Difference, DifferenceKind};

/// The AnnData convention.
pub struct Anndata;

/// Maximum size of a dataset whose values are kept while planning.
const MAX_KEPT_BYTES: u64 = 48 << 20;
/// Returns the elements that are concatenated along `axis`. Planning does not need their values.
fn along(axis: Axis) -> [&'static [u8]; 5] {
    match axis {
        Axis::Obs => [b"/X", b"/layers", b"/obsm", b"/obsp", b"/raw/X"],
        Axis::Var => [b"/X", b"/layers", b"/varm", b"/varp", b"/raw/X"],
    }
}

impl Convention for Anndata {
    fn choice(&self) -> Choice {
        Choice::Anndata
    }

    fn recognise(&self, file: &FileView<'_>) -> Option<String> {
        if file.root_text("encoding-type").is_some_and(|encoding| encoding == "anndata") {
            return Some("attribute encoding-type is \"anndata\"".to_owned());
        }
        old_mark(file).map(|mark| format!("{mark}, as anndata before 0.8 wrote it"))
    }

    fn rules(&self, file: &FileView<'_>, options: &ConventionOptions) -> Result<Vec<(usize, Rule)>, Refusal> {
        if file.root_text("encoding-type").is_none_or(|encoding| encoding != "anndata") {
            let mark = old_mark(file).unwrap_or_else(|| "no encoding-type".to_owned());
            let reason = format!(
                "{mark}: a file written by anndata before 0.8, whose elements have no encoding; write it again with \
                 anndata.read_h5ad(FILE).write_h5ad(FILE)"
            );
            return Err(Refusal { object: "/".to_owned(), reason });
        }
        let mut rules = Vec::new();
        let frame = [b"/", options.axis.of_anndata().frame().as_bytes()].concat();
        for at in 1..file.len() {
            let (Some(dims), Some(class)) = (file.dims(at), file.class(at)) else { continue };
            let path = file.path_of(at);
            let is_within =
                |root: &&[u8]| path == *root || path.strip_prefix(*root).is_some_and(|rest| rest[0] == b'/');
            let is_pointer = path.ends_with(b"/indptr");
            let is_categories = path.ends_with(b"/categories");
            // Among the columns of the axis' own tables, planning needs only categories.
            let is_along = along(options.axis.of_anndata()).iter().any(is_within) || is_within(&frame.as_slice());
            if is_along && !is_categories && !is_pointer {
                continue;
            }
            let len_bytes = dims.iter().fold(class.len_bytes(), |product, &dim| product.saturating_mul(dim));
            if len_bytes <= MAX_KEPT_BYTES && (!is_pointer || is_needed(file, at, options.axis.of_anndata())) {
                rules.push((at, Rule { values: ValueMeaning::Kept, ..Rule::default() }));
            }
        }
        Ok(rules)
    }
}

/// Returns the reason why observations are not appended to a file.
pub(crate) fn refuse_append() -> Difference {
    Difference {
        path: "/".to_owned(),
        kind: DifferenceKind::Convention,
        expected: "a file to which rows can be appended".to_owned(),
        found: "AnnData, whose shapes and categories change; merge all inputs into a new file".to_owned(),
        inputs: Vec::new(),
    }
}

/// Returns whether planning needs the pointers of entry number `at`: it belongs to a matrix whose columns (rows, if
/// variables are concatenated) are assembled from all inputs, or to an element that is compared as a whole.
fn is_needed(file: &FileView<'_>, at: usize, axis: Axis) -> bool {
    let path = file.path_of(at);
    let is_along = along(axis).iter().any(|root| path.starts_with(root));
    let group = file.find(crate::schema::parent_path(path));
    // Variables are columns of X and layers, but rows of varm and varp.
    let is_of_both = [b"/X".as_slice(), b"/layers", b"/raw/X"].iter().any(|root| path.starts_with(root));
    let interleaved = if axis == Axis::Var && is_of_both { "csr_matrix" } else { "csc_matrix" };
    !is_along || group.is_some_and(|group| file.text(group, "encoding-type").is_some_and(|kind| kind == interleaved))
}

/// Describes the mark of a file that is older than encodings, if it has one.
fn old_mark(file: &FileView<'_>) -> Option<String> {
    let is_marked = |name: &'static str| (1..file.len()).find(|&at| file.has(at, name)).map(|at| (at, name));
    if let Some((at, name)) = is_marked("h5sparse_format") {
        return Some(format!("{} has an attribute {name}", display_path(file.path_of(at))));
    }
    let is_table = |path: &[u8]| {
        let at = file.find(path)?;
        matches!(file.class(at)?, raddle_hdf5::model::TypeClass::Compound { .. }).then_some(())
    };
    (is_table(b"/obs").is_some() && is_table(b"/var").is_some() && file.find(b"/X").is_some())
        .then(|| "/obs and /var are compound datasets".to_owned())
}
