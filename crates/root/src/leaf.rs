//! The meaning of the bytes of leaves: branches of numbers and strings without classes.

use super::double32::{Packing, Range};
use super::item::Item;
use super::layout::{Compiler, Unreadable, regular};
use super::streamer::BasicType;
use super::tree::Leaf;
use raddle_columns::schema::{Field, Form, Number};

impl Compiler<'_> {
    /// Determines the layout of the leaves of a branch: a single leaf, or several one after the other.
    pub(super) fn leaves(&mut self, leaves: &[Leaf]) -> Result<(Item, Form), Unreadable> {
        if let [leaf] = leaves {
            return self.leaf(leaf);
        }
        if leaves.is_empty() {
            return Err(Unreadable::NoLeaf);
        }
        let (mut items, mut fields) = (Vec::new(), Vec::new());
        for leaf in leaves {
            if leaf.is_counted || leaf.class == "TLeafC" {
                return Err(Unreadable::CountedLeaves);
            }
            let (item, form) = self.leaf(leaf)?;
            items.push(item);
            fields.push(Field { name: leaf.name.clone(), form });
        }
        Ok((Item::Record { fields: items }, Form::Record(fields)))
    }

    fn leaf(&mut self, leaf: &Leaf) -> Result<(Item, Form), Unreadable> {
        if let Some(why) = &leaf.unsupported {
            return Err(Unreadable::Metadata(why.clone()));
        }
        let packed = |number, packing: Option<Packing>| {
            let packing = packing.ok_or_else(|| Unreadable::Range(leaf.title.clone()))?;
            Ok(BasicType { number, packing: Some(packing) })
        };
        let number = match (leaf.class.as_str(), leaf.is_unsigned) {
            ("TLeafC", _) => return Ok(self.text()),
            ("TLeafO", _) => Number::Bool,
            ("TLeafB", false) => Number::Int8,
            ("TLeafB", true) => Number::Uint8,
            ("TLeafS", false) => Number::Int16,
            ("TLeafS", true) => Number::Uint16,
            ("TLeafI", false) => Number::Int32,
            ("TLeafI", true) => Number::Uint32,
            ("TLeafL" | "TLeafG", false) => Number::Int64,
            ("TLeafL" | "TLeafG", true) => Number::Uint64,
            ("TLeafF", _) => Number::Float32,
            ("TLeafD", _) => Number::Float64,
            ("TLeafD32", _) => {
                return self.leaf_of(leaf, packed(Number::Float64, Range::in_title(&leaf.title).double32())?);
            }
            ("TLeafF16", _) => {
                return self.leaf_of(leaf, packed(Number::Float32, Range::in_title(&leaf.title).float16())?);
            }
            (class, _) => return Err(Unreadable::Leaf(class.to_owned())),
        };
        self.leaf_of(leaf, BasicType { number, packing: None })
    }

    fn leaf_of(&mut self, leaf: &Leaf, basic: BasicType) -> Result<(Item, Form), Unreadable> {
        let buffer = if leaf.is_counted { self.next_buffers(1) } else { 0 };
        let (mut item, mut form) = self.basic(basic);
        (item, form) = regular(item, form, &extents(leaf));
        if leaf.is_counted {
            (item, form) = (Item::Rest { buffer, content: Box::new(item) }, Form::list(form));
        }
        Ok((item, form))
    }
}

/// Returns the fixed extents of a leaf, from its title: `x[3][2]`, or `x[n][2]` with a count. If the title does not
/// match the leaf's length, returns that length as the only extent.
fn extents(leaf: &Leaf) -> Vec<u64> {
    let mut extents = Vec::new();
    let mut rest = leaf.title.as_str();
    while let Some((_, after)) = rest.split_once('[') {
        let Some((inside, after)) = after.split_once(']') else { break };
        extents.extend(inside.trim().parse::<u64>().ok());
        rest = after;
    }
    let product = extents.iter().try_fold(1u64, |product, &extent| product.checked_mul(extent));
    match product == Some(leaf.len) {
        true => extents,
        false if leaf.len == 1 => Vec::new(),
        false => vec![leaf.len],
    }
}
