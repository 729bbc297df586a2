//! Refusal of layout options that have no effect on any dataset of the output.

use super::{AskedChunk, AskedLayouts};
use crate::error::{MergeError, Result};
use crate::plan::chunk::Chunk;
use crate::plan::layout_rules::RuleObjects;
use crate::schema::{Role, Schema, SchemaEntry, display_path, is_named};
use std::collections::BTreeSet;

impl AskedLayouts<'_> {
    /// Refuses rules that match no dataset of `schema`, names of dimensions that no dataset has, and read patterns of
    /// grids if no dataset has a time axis.
    ///
    /// # Errors
    /// [`MergeError::Object`] for the first of them.
    pub fn check(&self, schema: &Schema) -> Result<()> {
        let columns = || columns(schema);
        let names = |entry: &SchemaEntry| self.names(entry, schema.rank(entry));
        for (number, rule) in self.options.layout_rules.iter().enumerate() {
            let refuse = |reason: String| Err(MergeError::Object { object: rule.pattern(), reason });
            if !columns().any(|entry| self.applies(number, entry)) {
                let is_constant = |entry: &&SchemaEntry| matches!(entry.role, Role::Constant { .. });
                let of_scalars = schema.entries.iter().filter(is_constant).any(|entry| self.applies(number, entry));
                return refuse(match of_scalars {
                    true => format!(
                        "matches only scalar or null datasets, which have no layout (--layout {:?})",
                        rule.to_string()
                    ),
                    false => format!(
                        "matches no dataset of the output (--layout {:?}); a pattern with a slash is matched from the root, one \
                         without matches a whole name",
                        rule.to_string()
                    ),
                });
            }
            let chunk = rule.settings().chunk.as_ref();
            if let (RuleObjects::All, Some(Chunk::Shape(shape))) = (rule.objects(), chunk)
                && !self.applies_to_some(shape, schema)
            {
                return refuse(without_rank(shape, &format!("--layout {:?}", rule.to_string()), schema));
            }
            if let Some(Chunk::Named(sizes)) = chunk {
                let of_rule: Vec<_> = columns().filter(|entry| self.applies(number, entry)).map(names).collect();
                check_names(sizes, &of_rule, &format!("--layout {:?}", rule.to_string()), &rule.pattern())?;
            }
        }
        if let Some(Chunk::Named(sizes)) = &self.options.chunk {
            let all: Vec<_> = columns().filter(|entry| !self.is_coordinate(entry)).map(names).collect();
            check_names(sizes, &all, &format!("--chunk {}", Chunk::Named(sizes.clone())), "/")?;
        }
        if let Some(Chunk::Shape(shape)) = &self.options.chunk
            && !self.options.is_chunk_of_profile
            && !self.applies_to_some(shape, schema)
        {
            let option = format!("--chunk {}", Chunk::Shape(shape.clone()));
            return Err(MergeError::Object { object: "/".to_owned(), reason: without_rank(shape, &option, schema) });
        }
        let is_timed =
            |entry: &SchemaEntry| self.grid(entry, &names(entry)).is_ok_and(|chunk| chunk != AskedChunk::Policy);
        if self.options.layout != self.options.layout.without_time() && !columns().any(is_timed) {
            return Err(MergeError::Object {
                object: "/".to_owned(),
                reason: format!(
                    "has no time axis, which --for {} needs: no dataset has a dimension scale with units such as 'days since \
                     1970-01-01' (CF); name the dimension by --chunk, as in --chunk time=1",
                    self.options.layout.word()
                ),
            });
        }
        Ok(())
    }

    /// Returns whether a dataset of `schema` has, or may have without its second axis, as many axes as the chunk
    /// `shape`.
    fn applies_to_some(&self, shape: &[u64], schema: &Schema) -> bool {
        let ranks = || columns(schema).map(|entry| schema.rank(entry));
        ranks().any(|rank| rank == shape.len() || (self.options.rank_1 && rank == shape.len() + 1))
    }
}

/// Returns the datasets of `schema` that have a layout.
fn columns(schema: &Schema) -> impl Iterator<Item = &SchemaEntry> {
    schema.entries.iter().filter(|entry| matches!(entry.role, Role::Column(_)))
}

/// Returns why a chunk `shape` that has a different number of axes than all datasets of `schema` is refused.
fn without_rank(shape: &[u64], option: &str, schema: &Schema) -> String {
    let ranks: BTreeSet<String> = columns(schema).map(|entry| schema.rank(entry).to_string()).collect();
    let ranks = ranks.into_iter().collect::<Vec<_>>().join(", ");
    let known =
        if ranks.is_empty() { "there are no datasets".to_owned() } else { format!("the datasets have {ranks}") };
    format!("has no dataset of {} dimension(s) ({option}): {known}", shape.len())
}

/// Refuses names of dimensions that no dataset has; `names` are those of each axis of each dataset.
fn check_names(sizes: &[(String, u64)], names: &[Vec<Vec<Vec<u8>>>], option: &str, object: &str) -> Result<()> {
    let known = || names.iter().flatten().flatten();
    let Some((missing, _)) = sizes.iter().find(|(name, _)| !known().any(|known| is_named(known, name))) else {
        return Ok(());
    };
    let offered = offered_dimensions(known(), "give a shape, such as 64x128");
    Err(MergeError::Object {
        object: object.to_owned(),
        reason: format!("has no dimension {missing:?} ({option}): {offered}"),
    })
}

/// Returns the names of dimensions as a string, or, if there are none, the reason and the remedy.
pub(crate) fn offered_dimensions<'a>(names: impl Iterator<Item = &'a Vec<u8>>, remedy: &str) -> String {
    let mut offered: Vec<String> = names.map(|name| display_path(name)).collect();
    offered.sort_unstable();
    offered.dedup();
    match offered.as_slice() {
        [] => format!(
            "its datasets have no named dimensions (netCDF dimensions, HDF5 dimension scales or labels); {remedy}"
        ),
        _ => format!("named dimensions are {}", offered.join(", ")),
    }
}
