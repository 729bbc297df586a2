//! Plans how a product is reassembled from the branches into which ROOT split its objects.
//!
//! [`super::whole`] carries the plans out. ROOT creates branches in the order of the class description, so members are
//! matched by walking both side by side: class, number, version and name must agree. Invariant: a plan uses every
//! branch below the product's branch exactly once; anything else is refused, and the refusal names the unexpected
//! branch or member.

use super::apart::{SplitReason, kind, unknown};
use super::front::Front;
use super::item::Item;
use super::layout::{self, Layout, Unreadable};
use super::streamer::{Element, ElementKind, StreamerInfo, StreamerInfos};
use super::tree::{Branch, ElementBranch, Tree};
use super::type_name::TypeName;
use raddle_columns::schema::{Form, Serialization};

/// Maximum depth of classes within classes.
const MAX_DEPTH: usize = 24;

/// Maximum number of classes in one product, each counted as often as it is used.
const MAX_CLASSES: usize = 4096;

/// Version of `TClonesArray` whose streamer is implemented.
const CLONES_VERSION: i32 = 4;

/// A branch from whose entries a product is reassembled.
#[derive(Debug)]
pub(super) struct ReassembledBranch {
    /// Number of the branch in the tree.
    pub(super) branch: usize,
    /// Contents of an entry or, in a collection, of each value of an entry.
    pub(super) item: Item,
    /// Form with the buffers that `item` fills.
    pub(super) form: Form,
    /// Index of the stored branch with the number of values, in a collection.
    pub(super) count: Option<usize>,
    /// Index of the stored branch whose member counts the values of an array behind a pointer.
    pub(super) counter: Option<usize>,
}

/// A part of a product.
#[derive(Debug)]
pub(super) enum ProductPart {
    /// Value of the stored branch with this index.
    Stored(usize),
    /// Object: its front, followed by its members.
    Object { front: Front, members: Vec<ProductPart> },
    /// Key and value of a map, without fronts.
    Pair { members: Vec<ProductPart> },
    /// Collection with the number of elements that the stored branch `count` holds.
    Collection { count: usize, front: Front, element: Box<ProductPart> },
    /// `TClonesArray` with the number of elements that the stored branch `count` holds.
    Clones { count: usize, front: Front, name: String, class: String, element: Box<ProductPart> },
}

/// Plan for reassembling a product.
#[derive(Debug)]
pub(super) struct Assembly {
    /// Stored branches, in the order in which they are needed.
    pub(super) stored: Vec<ReassembledBranch>,
    pub(super) part: ProductPart,
    /// Serialisation of the result: collections lack the front of a product.
    pub(super) serialization: Serialization,
}

impl Assembly {
    /// Plans the product of a top-level branch of the tree. `has_entries` returns whether a branch can be read.
    pub(super) fn of_branch(
        tree: &Tree,
        number: usize,
        infos: &StreamerInfos,
        has_entries: &dyn Fn(usize) -> bool,
    ) -> Result<Self, SplitReason> {
        let mut planner = Planner { tree, infos, has_entries, stored: Vec::new(), scope: None, depth: 0, classes: 0 };
        let (part, serialization) = planner.product(number)?;
        Ok(Self { stored: planner.stored, part, serialization })
    }
}

struct Planner<'t> {
    tree: &'t Tree,
    infos: &'t StreamerInfos,
    has_entries: &'t dyn Fn(usize) -> bool,
    stored: Vec<ReassembledBranch>,
    /// Index of the stored branch with the number of objects in the current collection.
    scope: Option<usize>,
    depth: usize,
    /// Number of classes used so far.
    classes: usize,
}

/// Branches of an object's members, the first `found` of which have been matched.
struct Below<'b> {
    /// Branch of the object.
    branch: &'b Branch,
    numbers: Vec<usize>,
    found: usize,
}

impl<'t> Planner<'t> {
    fn product(&mut self, number: usize) -> Result<(ProductPart, Serialization), SplitReason> {
        let branch = &self.tree.branches[number];
        let Some(element) = &branch.element else { return Err(SplitReason::NoClass { branch: branch.path.clone() }) };
        match element.kind {
            4 => {
                let part = self.collection(number, &element.class)?;
                Ok((part, Serialization::Basket))
            }
            0 if branch.has_branches => {
                let info = self.info_of(branch, element)?;
                let part = self.object(number, &element.class, info)?;
                Ok((part, Serialization::Root))
            }
            0 | -1 if element.id < 0 && !branch.has_branches => self.unsplit(number, element),
            _ => Err(kind(branch, element)),
        }
    }

    /// Plans a product that ROOT stored whole.
    fn unsplit(&mut self, number: usize, element: &ElementBranch) -> Result<(ProductPart, Serialization), SplitReason> {
        let branch = &self.tree.branches[number];
        let stored = self.stored(number)?;
        let part = ProductPart::Stored(stored);
        match &self.stored[stored].item {
            Item::Collection { .. } => Ok((part, Serialization::Basket)),
            Item::Object { .. } => Ok((part, Serialization::Root)),
            // Unlike an object within an object, an entry has no front.
            Item::Record { .. } if TypeName::parse(&element.class) == TypeName::Class(element.class.clone()) => {
                let info = self.info_of(branch, element)?;
                Ok((
                    ProductPart::Object { front: self.front(branch, &element.class, info)?, members: vec![part] },
                    Serialization::Root,
                ))
            }
            _ => Err(kind(branch, element)),
        }
    }

    /// Adds a branch of values, and returns its index.
    fn stored(&mut self, number: usize) -> Result<usize, SplitReason> {
        let branch = &self.tree.branches[number];
        if !(self.has_entries)(number) {
            return Err(SplitReason::Entries { branch: branch.path.clone() });
        }
        let Layout { item, form, .. } = layout::of_branch(branch, self.infos).map_err(|why| unknown(branch, why))?;
        if let Some(class) = item.reference() {
            return Err(SplitReason::Reference { branch: branch.path.clone(), class });
        }
        let item = match (item, self.scope) {
            (Item::Rest { content, .. }, Some(_)) => *content,
            (item, None) => item,
            (_, Some(_)) => {
                return Err(SplitReason::Kind { branch: branch.path.clone(), class: branch.name.clone(), kind: 0 });
            }
        };
        self.stored.push(ReassembledBranch { branch: number, item, form, count: self.scope, counter: None });
        Ok(self.stored.len() - 1)
    }

    /// Plans an object whose members are in the branches below `number`.
    fn object(&mut self, number: usize, class: &str, info: &'t StreamerInfo) -> Result<ProductPart, SplitReason> {
        let branch = &self.tree.branches[number];
        let mut below = Below { branch, numbers: self.tree.children(number), found: 0 };
        let front = self.front(branch, class, info)?;
        let members = self.members(class, info, &mut below, "")?;
        self.finish(&below, class)?;
        Ok(ProductPart::Object { front, members })
    }

    /// Fails if any of the branches has not been matched.
    fn finish(&self, below: &Below<'_>, class: &str) -> Result<(), SplitReason> {
        match below.numbers.get(below.found) {
            None => Ok(()),
            Some(&left) => {
                Err(SplitReason::NoMember { branch: self.tree.branches[left].path.clone(), class: class.to_owned() })
            }
        }
    }

    /// Plans the members of a class, whose branches come next. Branch names consist of `prefix` and the member's name.
    fn members(
        &mut self,
        class: &str,
        info: &'t StreamerInfo,
        below: &mut Below<'t>,
        prefix: &str,
    ) -> Result<Vec<ProductPart>, SplitReason> {
        self.depth += 1;
        self.classes += 1;
        if self.depth > MAX_DEPTH || self.classes > MAX_CLASSES {
            return Err(SplitReason::Depth { branch: below.branch.path.clone() });
        }
        let mut members = Vec::with_capacity(info.elements.len());
        for (id, element) in info.elements.iter().enumerate() {
            let next = below.numbers.get(below.found).copied();
            let member_branch =
                next.filter(|&number| is_member(&self.tree.branches[number], class, info, id, element, prefix));
            members.push(match (member_branch, &element.kind) {
                (Some(number), _) => {
                    below.found += 1;
                    self.member(number, element, info, &members)?
                }
                (None, ElementKind::Base { .. }) => self.in_place(&element.name, element, class, below, prefix)?,
                (None, ElementKind::Object) if element.array_len == 0 => {
                    let prefix = format!("{prefix}{}.", element.name);
                    self.in_place(object_class(element), element, class, below, &prefix)?
                }
                _ => return Err(no_branch(below, class, element)),
            });
        }
        self.depth -= 1;
        Ok(members)
    }

    /// Plans an object whose members are among those of the enclosing object.
    fn in_place(
        &mut self,
        name: &str,
        element: &Element,
        class: &str,
        below: &mut Below<'t>,
        prefix: &str,
    ) -> Result<ProductPart, SplitReason> {
        let next = below.numbers.get(below.found).map(|&number| &self.tree.branches[number]);
        // If the next branch belongs to another class, this one has no members.
        let info = match self.described(name, next, element) {
            Some(info) if layout::is_as_described(name) => info,
            _ => return Err(no_branch(below, class, element)),
        };
        let front = self.front(below.branch, name, info)?;
        let members = self.members(name, info, below, prefix)?;
        Ok(ProductPart::Object { front, members })
    }

    /// Plans a member that has a branch.
    fn member(
        &mut self,
        number: usize,
        element: &Element,
        info: &StreamerInfo,
        before: &[ProductPart],
    ) -> Result<ProductPart, SplitReason> {
        let branch = &self.tree.branches[number];
        let Some(of) = &branch.element else { return Err(unknown(branch, Unreadable::NoLeaf)) };
        match (of.kind, self.scope) {
            (1 | 2, None) if branch.has_branches => {
                let name = match element.kind {
                    ElementKind::Base { .. } => element.name.as_str(),
                    ElementKind::Object if element.array_len == 0 => object_class(element),
                    // A pointer is stored with the number of its object, which is not in any branch.
                    _ => return Err(unknown(branch, layout::unknown(&of.class, element))),
                };
                let first = self.tree.children(number).first().map(|&number| &self.tree.branches[number]);
                let info = self.described(name, first, element);
                let info = info.filter(|_| layout::is_as_described(name));
                let info = info.ok_or_else(|| unknown(branch, Unreadable::Class(name.to_owned())))?;
                self.object(number, name, info)
            }
            (3, None) if element.array_len == 0 => self.clones(number, of),
            (4, None) if element.array_len == 0 => self.collection(number, &element.type_name),
            (0, None) | (31 | 41, Some(_)) if !branch.has_branches => {
                let stored = self.stored(number)?;
                if let ElementKind::CountedNumbers { counter, .. } = &element.kind {
                    let id = info.elements.iter().position(|element| element.name == *counter);
                    let Some(ProductPart::Stored(counter)) = id.and_then(|id| before.get(id)) else {
                        return Err(unknown(branch, Unreadable::CountElsewhere(element.type_name.clone())));
                    };
                    self.stored[stored].counter = Some(*counter);
                }
                Ok(ProductPart::Stored(stored))
            }
            _ => Err(kind(branch, of)),
        }
    }

    /// Plans a collection: branch `number` holds the number of objects, the branches below it the members of the
    /// objects.
    fn collection(&mut self, number: usize, type_name: &str) -> Result<ProductPart, SplitReason> {
        let branch = &self.tree.branches[number];
        let count = self.stored(number)?;
        let mut below = Below { branch, numbers: self.tree.children(number), found: 0 };
        let first = below.numbers.first().map(|&number| &self.tree.branches[number]);
        let of_first = first.and_then(|first| first.element.as_ref()).map(|element| element.class.clone());
        // The class of a pair is the one that its members state.
        let (class, is_map) = match TypeName::parse(type_name) {
            TypeName::List(content) => match *content {
                TypeName::Class(name) => (Some(name), false),
                TypeName::Pair(..) => (of_first, false),
                _ => (None, false),
            },
            TypeName::Map(..) => (of_first, true),
            _ => (None, false),
        };
        let class = class.unwrap_or_else(|| type_name.to_owned());
        let (front, members) = self.objects(branch, &class, count, &mut below)?;
        let element = match is_map {
            true => ProductPart::Pair { members },
            false => ProductPart::Object { front, members },
        };
        let front = Front::Version(self.infos.streamer_info_version());
        Ok(ProductPart::Collection { count, front, element: Box::new(element) })
    }

    /// Plans a member that is a `TClonesArray`. Its name, first index and bits are not in any branch; the ones used are
    /// those of the array that ROOT creates when it reads the tree.
    fn clones(&mut self, number: usize, of: &ElementBranch) -> Result<ProductPart, SplitReason> {
        let branch = &self.tree.branches[number];
        let (class, array) = (&of.clones, self.only("TClonesArray"));
        let version = array.map_or(0, |info| info.version);
        if version != CLONES_VERSION {
            let class = "TClonesArray".to_owned();
            return Err(SplitReason::Version { branch: branch.path.clone(), class, version: i64::from(version) });
        }
        let count = self.stored(number)?;
        let mut below = Below { branch, numbers: self.tree.children(number), found: 0 };
        let (front, members) = self.objects(branch, class, count, &mut below)?;
        let class_version = match front {
            Front::Version(version) => version,
            _ => return Err(unknown(branch, Unreadable::Class(class.clone()))),
        };
        Ok(ProductPart::Clones {
            count,
            front: Front::Version(CLONES_VERSION as u16),
            name: format!("{class}s"),
            class: format!("{class};{class_version}"),
            element: Box::new(ProductPart::Object { front, members }),
        })
    }

    /// Plans the objects of a collection; the stored branch `count` holds their number.
    fn objects(
        &mut self,
        branch: &Branch,
        class: &str,
        count: usize,
        below: &mut Below<'t>,
    ) -> Result<(Front, Vec<ProductPart>), SplitReason> {
        let first = below.numbers.first().map(|&number| &self.tree.branches[number]);
        let info = self.statement(class, first).or_else(|| self.only(class));
        let info = info.filter(|_| layout::is_as_described(class));
        let info = info.ok_or_else(|| unknown(branch, Unreadable::Class(class.to_owned())))?;
        let front = self.front(branch, class, info)?;
        self.scope = Some(count);
        let members = self.members(class, info, below, "")?;
        self.scope = None;
        self.finish(below, class)?;
        // Without members, nothing would limit the number of objects.
        if self.stored.len() == count + 1 {
            return Err(SplitReason::NoMember { branch: branch.path.clone(), class: class.to_owned() });
        }
        Ok((front, members))
    }

    fn front(&self, branch: &Branch, class: &str, info: &StreamerInfo) -> Result<Front, SplitReason> {
        Front::of_class(class, info, self.infos).ok_or_else(|| SplitReason::Version {
            branch: branch.path.clone(),
            class: class.to_owned(),
            version: i64::from(info.version),
        })
    }

    /// Returns the description of the class version that a branch states.
    fn info_of(&self, branch: &Branch, element: &ElementBranch) -> Result<&'t StreamerInfo, SplitReason> {
        layout::info_of(element, self.infos).ok_or_else(|| SplitReason::Version {
            branch: branch.path.clone(),
            class: element.class.clone(),
            version: element.version,
        })
    }

    /// Returns the description of the class of a base or member. Branch `first` may hold the first member of that
    /// class.
    fn described(&self, class: &str, first: Option<&Branch>, element: &Element) -> Option<&'t StreamerInfo> {
        self.statement(class, first).or_else(|| match element.kind {
            ElementKind::Base { version } => self.infos.find(class, u16::try_from(version).ok()?, None),
            _ => self.only(class),
        })
    }

    /// Returns the description that a branch states; `None` if the branch is not a member of `class`.
    fn statement(&self, class: &str, branch: Option<&Branch>) -> Option<&'t StreamerInfo> {
        let element = branch?.element.as_ref().filter(|element| element.class == class)?;
        layout::info_of(element, self.infos)
    }

    fn only(&self, class: &str) -> Option<&'t StreamerInfo> {
        match self.infos.versions(class) {
            [info] => Some(info),
            _ => None,
        }
    }
}

/// Returns whether a branch holds member `id` of a class.
fn is_member(branch: &Branch, class: &str, info: &StreamerInfo, id: usize, element: &Element, prefix: &str) -> bool {
    let is_stated = branch.element.as_ref().is_some_and(|of| {
        let is_version = i64::from(info.version) == of.version && (of.checksum == 0 || of.checksum == info.checksum);
        of.class == class && i64::try_from(id) == Ok(of.id) && is_version
    });
    let bare = branch.name.split('[').next().unwrap_or_default().trim_end_matches('.');
    let name = format!("{prefix}{}", element.name);
    let before = bare.strip_suffix(name.as_str());
    is_stated && before.is_some_and(|before| before.is_empty() || before.ends_with('.'))
}

/// Returns the class of a member that is an object, or a pointer that is stored like an object.
fn object_class(element: &Element) -> &str {
    element.type_name.trim_end_matches('*')
}

fn no_branch(below: &Below<'_>, class: &str, element: &Element) -> SplitReason {
    SplitReason::NoBranch {
        branch: below.branch.path.clone(),
        class: class.to_owned(),
        member: element.name.clone(),
        type_name: element.type_name.clone(),
    }
}
