//! Elements outside the axis of concatenation, which are carried over according to the policy that the user chose.
//!
//! Source: `merge_nested` of `anndata._core.merge`. Invariant: a dict that ends up empty is left out.

use super::output::AssembledTree;
use super::tree::{CombineResult, Node};
use super::value::{self, Axes};
use crate::conventions::MergePolicy;
use crate::schema::child_path;

/// Policy for elements that have the same name in several inputs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Policy<'a> {
    /// Choice of the elements that are carried over.
    pub merge: MergePolicy,
    /// Axes whose elements are matched by name.
    pub axes: Option<Axes<'a>>,
}

/// Element that is carried over, with its inner elements if it is a dict.
pub(super) struct CarriedElement<'a> {
    /// Name of the element.
    pub name: &'a [u8],
    what: What<'a>,
}

enum What<'a> {
    Value(value::InputElement<'a>),
    Dict(Node<'a>, Vec<CarriedElement<'a>>),
}

impl CarriedElement<'_> {
    /// Writes the element into the group at `parent`.
    pub fn write(&self, parent: &[u8], out: &mut AssembledTree) -> CombineResult<()> {
        let path = child_path(parent, self.name);
        match &self.what {
            What::Value(value) => value.write(path, out),
            What::Dict(node, inside) => {
                out.group(path.clone(), *node, node.attributes().clone());
                inside.iter().try_for_each(|one| one.write(&path, out))
            }
        }
    }
}

/// Returns the elements of `groups` that are carried over, and records the others. `groups` has one list for each input
/// that has any elements.
pub(super) fn carried<'a>(
    groups: &[Vec<Node<'a>>],
    policy: Policy<'_>,
    out: &mut AssembledTree,
) -> Vec<CarriedElement<'a>> {
    // Elements that all inputs must have follow the order of the last input, others the order of appearance.
    let mut names: Vec<&[u8]> = Vec::new();
    let is_in = |group: &[Node<'a>], name: &[u8]| group.iter().any(|node| node.name() == name);
    if policy.merge == MergePolicy::Same {
        let last = groups.last().map_or(&[][..], Vec::as_slice);
        names = last.iter().map(|node| node.name()).collect();
    } else {
        for node in groups.iter().flatten() {
            if !names.contains(&node.name()) {
                names.push(node.name());
            }
        }
    }
    let mut all = Vec::new();
    let mut everywhere = names.clone();
    everywhere.extend(groups.iter().flatten().map(|node| node.name()));
    for name in everywhere {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    for name in names {
        let found: Vec<Node<'a>> =
            groups.iter().filter_map(|group| group.iter().find(|node| node.name() == name)).copied().collect();
        let is_everywhere = groups.iter().all(|group| is_in(group, name));
        match out.take(one(&found, is_everywhere, policy)) {
            None => {}
            Some(None) => note(&found, is_everywhere, policy, groups.len() as u32, out),
            Some(Some(DictMerge::Value(value))) => all.push(CarriedElement { name, what: What::Value(value) }),
            Some(Some(DictMerge::Dicts(node))) => {
                let inside: Vec<Vec<Node<'a>>> = found.iter().map(|node| node.children().collect()).collect();
                let inside = carried(&inside, policy, out);
                if !inside.is_empty() {
                    all.push(CarriedElement { name, what: What::Dict(node, inside) });
                }
            }
        }
    }
    all
}

enum DictMerge<'a> {
    Value(value::InputElement<'a>),
    Dicts(Node<'a>),
}

fn one<'a>(found: &[Node<'a>], is_everywhere: bool, policy: Policy<'_>) -> CombineResult<Option<DictMerge<'a>>> {
    let Some(&first) = found.first() else { return Ok(None) };
    if policy.merge == MergePolicy::Same && !is_everywhere {
        return Ok(None);
    }
    if found.iter().all(|node| node.encoding() == "dict") {
        first.expect(&[("dict", "0.1.0")])?;
        return Ok(Some(DictMerge::Dicts(first)));
    }
    let read = |node: Node<'a>| value::read(node, policy.axes);
    match policy.merge {
        MergePolicy::First => Ok(Some(DictMerge::Value(read(first)?))),
        MergePolicy::Only if found.len() > 1 => Ok(None),
        MergePolicy::Only => Ok(Some(DictMerge::Value(read(first)?))),
        MergePolicy::Same | MergePolicy::Unique => {
            let known = read(first)?;
            for other in &found[1..] {
                if !read(*other)?.equals(&known, policy.axes.is_some())? {
                    return Ok(None);
                }
            }
            Ok(Some(DictMerge::Value(known)))
        }
    }
}

fn note(found: &[Node<'_>], is_everywhere: bool, policy: Policy<'_>, inputs: u32, out: &mut AssembledTree) {
    let Some(first) = found.first() else { return };
    let why = match (policy.merge, is_everywhere) {
        (MergePolicy::Same, false) => "not in all inputs, left out",
        (MergePolicy::Only, _) => "in more than one input, left out",
        _ => "other values, left out",
    };
    let expected = match policy.merge {
        MergePolicy::Only => "in one input",
        _ => "equal where it is",
    };
    let _ = inputs;
    out.leave_out(first.path(), expected, why, found.iter().map(|node| node.input).collect());
}
