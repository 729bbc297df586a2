//! Completion of a join: fills what some inputs lack, and puts the objects of the output in order.

use super::fill::{AmbiguousFill, fill_absent_rows};
use super::found::FoundDifference;
use super::joined_entry::JoinedEntry;
use super::{AttributePolicy, Difference, DifferenceKind, Join, JoinResult, Joiner, ScalarPolicy};
use crate::schema::{InputExtent, Role, Schema, display_path, parent_path};
use std::collections::{HashMap, HashSet};

impl Joiner {
    /// Completes the join.
    pub fn finish(mut self) -> JoinResult {
        self.adopt_grown();
        self.report_absences();
        self.leave_out_partial();
        let stuck = self.complete_entries();
        if self.options.join == Join::Outer {
            self.fill_rows();
        }
        // With different conventions, everything else differs too.
        self.found.keep_only_if_any(DifferenceKind::Convention);
        let (mut differences, mut warnings) = self.make_of_inputs();
        differences.extend(self.stack_scalars());
        for (difference, path) in self.take_differences() {
            let is_stuck = difference.kind == DifferenceKind::Attributes && stuck.contains(&path);
            match self.is_bridged(difference.kind) && !is_stuck {
                true => warnings.push(difference),
                false => differences.push(difference),
            }
        }
        self.into_result(differences, warnings)
    }

    /// With `Join::Inner`, removes objects that are not in all inputs.
    fn leave_out_partial(&mut self) {
        if self.options.join != Join::Inner {
            return;
        }
        let (inputs, grows, derived) = (self.inputs, self.grows, &self.derived);
        let is_grown = |path: &[u8]| grows && derived.iter().any(|spec| spec.makes(path));
        let stays = |joined: &JoinedEntry| joined.is_widest() || is_grown(&joined.entry.path);
        self.entries.retain(|joined| joined.holders() == inputs || stays(joined));
    }

    /// Completes the extents of columns, and removes attributes that differ if only identical ones are kept. Returns
    /// the paths of objects that cannot lose them, because a file that is appended to keeps its attributes.
    fn complete_entries(&mut self) -> HashSet<Vec<u8>> {
        let mut stuck = HashSet::new();
        for joined in &mut self.entries {
            let is_once = joined.kept.is_some() || joined.is_widest();
            if let Some(column) = &mut joined.column {
                column.is_once = is_once;
                column.facts.fill_to(self.inputs as usize, InputExtent::absent(0));
            }
            if self.options.attributes == AttributePolicy::Identical && joined.drop_attributes() {
                stuck.extend(self.grows.then(|| joined.entry.path.clone()));
            }
        }
        stuck
    }

    /// Gives absent columns the rows of their tables, and reports those that could have several numbers of rows.
    fn fill_rows(&mut self) {
        for AmbiguousFill { path, input, lengths } in fill_absent_rows(&mut self.entries, self.inputs) {
            let lengths: Vec<String> = lengths.iter().map(u64::to_string).collect();
            let found = format!("nothing, and tables of {} rows", lengths.join(" and "));
            self.found.add(&path, DifferenceKind::Rows, "the number of rows of its table".to_owned(), found, input);
        }
    }

    /// Reports objects that some inputs lack. Members of an absent group are not listed individually.
    fn report_absences(&mut self) {
        if self.options.join == Join::Union {
            return;
        }
        let absent_parents: HashSet<&[u8]> = self
            .entries
            .iter()
            .filter(|joined| joined.holders() < self.inputs && matches!(joined.entry.role, Role::Group { .. }))
            .map(|joined| joined.entry.path.as_slice())
            .collect();
        for joined in &self.entries {
            let parent = parent_path(&joined.entry.path);
            if joined.holders() == self.inputs || joined.is_widest() || absent_parents.contains(parent) {
                continue;
            }
            let has = |input: u32| joined.present.iter().any(|run| run.contains(&input));
            let is_missing = has(0);
            let (kind, expected, found) = if is_missing {
                (DifferenceKind::Missing, joined.entry.role.word(), "nothing")
            } else {
                (DifferenceKind::Extra, "nothing", joined.entry.role.word())
            };
            let (expected, found) = (expected.to_owned(), found.to_owned());
            let found = FoundDifference { path: joined.entry.path.clone(), kind, expected, found };
            self.found.insert(found, (0..self.inputs).filter(|&input| has(input) != is_missing).collect());
        }
    }

    /// Removes the differences found so far; returns them with the paths of their objects.
    fn take_differences(&mut self) -> Vec<(Difference, Vec<u8>)> {
        let found = self.found.take().into_iter();
        let with_inputs = found.map(|(found, mut inputs)| {
            if found.kind == DifferenceKind::Repeated
                && let Some(&index) = self.by_path.get(&found.path)
                && let Some(first) = self.entries[index].present.first()
            {
                inputs.insert(0, first.start); // none of them is the right one
            }
            let FoundDifference { path, kind, expected, found } = found;
            (Difference { path: display_path(&path), kind, expected, found, inputs }, path)
        });
        with_inputs.collect()
    }

    /// Returns whether the options determine what to do with this kind of difference.
    fn is_bridged(&self, kind: DifferenceKind) -> bool {
        match kind {
            DifferenceKind::Missing | DifferenceKind::Extra => self.options.join != Join::Exact,
            DifferenceKind::Attributes => match self.options.attributes {
                AttributePolicy::Error => false,
                AttributePolicy::Stack => self.options.join != Join::Union,
                _ => true,
            },
            DifferenceKind::Value => self.options.scalars != ScalarPolicy::Equal,
            DifferenceKind::Scale => self.options.scalars == ScalarPolicy::First,
            DifferenceKind::Dangling | DifferenceKind::FillValue | DifferenceKind::Index => true,
            _ => false,
        }
    }

    /// Numbers the objects of the output in their order.
    fn into_result(self, differences: Vec<Difference>, warnings: Vec<Difference>) -> JoinResult {
        let (mut schema, mut all_declared) = (Schema::default(), Vec::new());
        for joined in sort_parents_first(self.entries) {
            let JoinedEntry { mut entry, column, declared, is_disputed, .. } = joined;
            if let Some(mut declared) = declared.filter(|_| !is_disputed) {
                declared.entry = schema.entries.len() as u32;
                all_declared.push(*declared);
            }
            if let Some(mut column) = column {
                entry.role = Role::Column(schema.columns.len() as u32);
                column.entry = schema.entries.len() as u32;
                schema.columns.push(column);
            }
            schema.entries.push(entry);
        }
        JoinResult {
            schema,
            differences,
            warnings,
            declared: all_declared,
            convention: self.convention.flatten(),
            uncounted: Vec::new(),
            because: self.because,
        }
    }
}

/// Sorts entries in creation order: objects first seen in a later input follow the existing children of their parent.
fn sort_parents_first(entries: Vec<JoinedEntry>) -> Vec<JoinedEntry> {
    let mut children: HashMap<Vec<u8>, Vec<JoinedEntry>> = HashMap::new();
    let mut roots = Vec::new();
    for joined in entries {
        if joined.entry.path == b"/" {
            roots.push(joined);
        } else {
            children.entry(parent_path(&joined.entry.path).to_vec()).or_default().push(joined);
        }
    }
    let mut sorted = Vec::new();
    let mut stack = roots;
    while let Some(joined) = stack.pop() {
        if let Some(inside) = children.remove(&joined.entry.path) {
            stack.extend(inside.into_iter().rev());
        }
        sorted.push(joined);
    }
    sorted
}
