//! The metadata of a tree: branches, descriptions of their values, and the positions of their baskets.
//!
//! Invariant: the baskets of a branch are contiguous, starting with entry 0.

use super::basket::{BasketPlace, StoredBasket, embedded_entries};
use super::file::RootFile;
use super::object::{MemberValue, Object, ObjectId, Objects, read_object};
use raddle_columns::error::{Location, Result, UnlocatedError};
use std::collections::HashSet;

/// Maximum depth of branches. If branches are references, nothing else limits it.
const MAX_DEPTH: usize = 64;

/// Metadata of a tree.
#[derive(Debug)]
pub(super) struct Tree {
    pub(super) len_entries: u64,
    /// Branches, each before those below it.
    pub(super) branches: Vec<Branch>,
    /// Branches with unsupported metadata, and the reasons.
    pub(super) unsupported: Vec<(String, String)>,
}

/// Metadata of a branch.
#[derive(Debug)]
pub(super) struct Branch {
    /// Name of the branch itself.
    pub(super) name: String,
    pub(super) title: String,
    /// Names from the top-level branch down, joined by `/`.
    pub(super) path: String,
    /// Name of the top-level branch. Names of branches may contain `/`.
    pub(super) top: String,
    /// Number of branches above this one.
    pub(super) depth: usize,
    /// Description of the objects in a branch of objects.
    pub(super) element: Option<ElementBranch>,
    pub(super) leaves: Vec<Leaf>,
    pub(super) has_branches: bool,
    pub(super) len_entries: u64,
    /// Length of all entries when decoded.
    pub(super) total_len_bytes: u64,
    pub(super) baskets: Vec<BasketPlace>,
}

/// Contents of a `TBranchElement`.
#[derive(Debug, Clone)]
pub(super) struct ElementBranch {
    /// Class of the object, or of the object that has the branch as a member.
    pub(super) class: String,
    pub(super) version: i64,
    pub(super) checksum: u32,
    /// Number of the member in its class; negative for whole objects.
    pub(super) id: i64,
    /// 0 for a whole object or member, 1 for a base class, 2 for a split object, 3 and 4 for split collections (their
    /// count), 31 and 41 for the members of collections.
    pub(super) kind: i64,
    /// Class of the objects of a split collection.
    pub(super) clones: String,
}

/// Metadata of a leaf.
#[derive(Debug, Clone, Default)]
pub(super) struct Leaf {
    pub(super) name: String,
    pub(super) title: String,
    pub(super) class: String,
    /// Number of values of each entry, or of each count.
    pub(super) len: u64,
    pub(super) is_unsigned: bool,
    /// Whether another leaf holds the number of values.
    pub(super) is_counted: bool,
    /// Ids of the counting leaf, and of this leaf.
    counter: Option<ObjectId>,
    id: ObjectId,
    /// Reason why the remaining metadata is unknown, if it is.
    pub(super) unsupported: Option<String>,
}

impl Leaf {
    /// Parses the title of a branch of one leaf with the name of the branch: `x/D`, `x[3]/F`, or `x[n][2]/I` with a
    /// count. Titles of several leaves and other strings return `None`.
    pub(super) fn of_title(branch: &str, title: &str) -> Option<Self> {
        let (title, code) = title.rsplit_once('/')?;
        let (class, is_unsigned) = match code {
            "C" => ("TLeafC", false),
            "O" => ("TLeafO", false),
            "B" | "b" => ("TLeafB", code == "b"),
            "S" | "s" => ("TLeafS", code == "s"),
            "I" | "i" => ("TLeafI", code == "i"),
            "L" | "l" => ("TLeafL", code == "l"),
            "F" => ("TLeafF", false),
            "D" => ("TLeafD", false),
            _ => return None,
        };
        let mut extents = title.strip_prefix(branch)?;
        let (mut len, mut is_counted) = (1_u64, false);
        while !extents.is_empty() {
            let (inside, after) = extents.strip_prefix('[')?.split_once(']')?;
            match inside.parse::<u64>() {
                Ok(extent) => len = len.checked_mul(extent)?,
                // Only the outermost extent may be a count.
                Err(_) if extents.len() == title.len() - branch.len() => is_counted = true,
                Err(_) => return None,
            }
            extents = after;
        }
        let (title, class) = (title.to_owned(), class.to_owned());
        Some(Self { name: branch.to_owned(), title, class, len, is_unsigned, is_counted, ..Self::default() })
    }
}

impl Branch {
    /// Returns a name that shows where the branch belongs: its name, preceded by the name of the top-level branch
    /// unless it already begins with it.
    pub(super) fn product_name(&self) -> String {
        let top = self.top.as_str();
        match self.name.strip_prefix(top) {
            Some(rest) if rest.is_empty() || top.ends_with('.') || rest.starts_with(['.', '[', '_']) => {
                self.name.clone()
            }
            _ => format!("{}.{}", top.trim_end_matches('.'), self.name),
        }
    }
}

impl Tree {
    /// Reads the metadata of a tree.
    pub(super) fn read(file: &RootFile, path: &str) -> Result<Self> {
        let key = file.tree_key(path)?;
        let place = Location::file(file.input().path()).tree(path);
        let payload = file.read_object(key).map_err(|fault| fault.at(&place))?;
        let (objects, id) = read_object(&payload, u64::from(key.key_len_bytes), &key.class, file.infos())
            .map_err(|fault| fault.at(&place))?;
        let tree = objects.get(id).ok_or_else(|| missing("tree").at(&place))?;
        let len_entries = tree.integer("fEntries").and_then(|entries| u64::try_from(entries).ok());
        let len_entries = len_entries.ok_or_else(|| missing("number of entries").at(&place))?;
        let mut read = Self { len_entries, branches: Vec::new(), unsupported: Vec::new() };
        let mut seen = HashSet::new();
        for branch in objects.array(tree, "fBranches").iter().flatten() {
            add_branches(&objects, *branch, None, &mut seen, &mut read, &place)?;
        }
        Ok(read)
    }

    /// Returns the branches directly below a branch, in their order.
    pub(super) fn children(&self, number: usize) -> Vec<usize> {
        let depth = self.branches[number].depth;
        let below = (number + 1..self.branches.len()).take_while(|&below| self.branches[below].depth > depth);
        below.filter(|&below| self.branches[below].depth == depth + 1).collect()
    }

    /// Returns the branch that holds member `id` of the same objects as `branch`, which holds another member of a split
    /// collection.
    pub(super) fn sibling(&self, branch: &Branch, id: i64) -> Option<usize> {
        // Members of members are among those of the objects: names show of which.
        let parent = |branch: &Branch| {
            let parent = branch.path.strip_suffix(branch.name.as_str())?.strip_suffix('/')?;
            let object = branch.name.rsplit_once('.').map_or("", |(object, _)| object);
            Some((parent.to_owned(), object.to_owned()))
        };
        let (of_branch, element) = (parent(branch), branch.element.as_ref()?);
        self.branches.iter().position(|sibling| {
            sibling
                .element
                .as_ref()
                .is_some_and(|other| other.id == id && other.kind == element.kind && other.class == element.class)
                && parent(sibling) == of_branch
        })
    }

    /// Returns the branch that counts the values of `branch` in each entry; both have a single leaf.
    pub(super) fn counter_of(&self, branch: &Branch) -> Option<usize> {
        let [Leaf { counter: Some(counter), .. }] = branch.leaves.as_slice() else { return None };
        self.branches.iter().position(|branch| matches!(branch.leaves.as_slice(), [leaf] if leaf.id == *counter))
    }
}

fn missing(what: &str) -> UnlocatedError {
    UnlocatedError::Damaged { address: 0, structure: "tree", what: format!("the {what} is missing") }
}

/// Adds a branch and the branches below it, each once. `parent` is the number of the branch above it.
fn add_branches(
    objects: &Objects,
    id: ObjectId,
    parent: Option<usize>,
    seen: &mut HashSet<ObjectId>,
    tree: &mut Tree,
    place: &Location,
) -> Result<()> {
    let Some(object) = objects.get(id) else { return Ok(()) };
    if !seen.insert(id) {
        return Ok(());
    }
    let parent = parent.map(|parent| &tree.branches[parent]);
    let depth = parent.map_or(0, |parent| parent.depth + 1);
    if depth > MAX_DEPTH {
        let what = "branches are nested too deeply".to_owned();
        return Err(UnlocatedError::Damaged { address: 0, structure: "tree", what }.at(place));
    }
    let name = object.text("fName").unwrap_or_default().to_owned();
    let parent = parent.filter(|parent| !parent.path.is_empty());
    let path = parent.map_or_else(|| name.clone(), |parent| format!("{}/{name}", parent.path));
    let top = parent.map_or_else(|| name.clone(), |parent| parent.top.clone());
    if let Some(why) = &object.unsupported {
        tree.unsupported.push((path, why.clone()));
        return Ok(());
    }
    let place_of = place.branch(&path);
    let len_entries = object.integer("fEntries").and_then(|entries| u64::try_from(entries).ok());
    let len_entries = len_entries.ok_or_else(|| missing("number of entries").at(&place_of))?;
    let inner = objects.array(object, "fBranches");
    tree.branches.push(Branch {
        title: object.text("fTitle").unwrap_or_default().to_owned(),
        element: element_of(object),
        leaves: objects.array(object, "fLeaves").iter().flatten().filter_map(|&leaf| leaf_of(objects, leaf)).collect(),
        has_branches: inner.iter().any(Option::is_some),
        len_entries,
        total_len_bytes: object.integer("fTotBytes").and_then(|len| u64::try_from(len).ok()).unwrap_or(0),
        baskets: baskets_of(objects, object, len_entries).map_err(|fault| fault.at(&place_of))?,
        name,
        path,
        top,
        depth,
    });
    let number = tree.branches.len() - 1;
    for branch in inner.iter().flatten() {
        add_branches(objects, *branch, Some(number), seen, tree, place)?;
    }
    Ok(())
}

fn element_of(object: &Object) -> Option<ElementBranch> {
    Some(ElementBranch {
        class: object.text("fClassName")?.to_owned(),
        version: object.integer("fClassVersion")?,
        checksum: object.integer("fCheckSum")? as u32,
        id: object.integer("fID")?,
        kind: object.integer("fType")?,
        clones: object.text("fClonesName").unwrap_or_default().to_owned(),
    })
}

fn leaf_of(objects: &Objects, id: ObjectId) -> Option<Leaf> {
    let object = objects.get(id)?;
    if object.unsupported.is_some() {
        return Some(Leaf { class: object.class.clone(), unsupported: object.unsupported.clone(), ..Leaf::default() });
    }
    Some(Leaf {
        name: object.text("fName")?.to_owned(),
        title: object.text("fTitle")?.to_owned(),
        class: object.class.clone(),
        len: u64::try_from(object.integer("fLen")?).ok()?,
        is_unsigned: object.integer("fIsUnsigned").is_some_and(|unsigned| unsigned != 0),
        is_counted: matches!(object.get("fLeafCount"), Some(MemberValue::Object(_) | MemberValue::Skipped)),
        counter: match object.get("fLeafCount") {
            Some(MemberValue::Object(counter)) => Some(*counter),
            _ => None,
        },
        id,
        unsupported: None,
    })
}

/// Reads the positions of the baskets of a branch, in the order of their entries.
fn baskets_of(objects: &Objects, branch: &Object, len_entries: u64) -> Result<Vec<BasketPlace>, UnlocatedError> {
    let damaged = |what: String| UnlocatedError::Damaged { address: 0, structure: "list of baskets", what };
    let (addresses, lengths) = (branch.integers("fBasketSeek"), branch.integers("fBasketBytes"));
    let first_entries = branch.integers("fBasketEntry");
    let written = branch.integer("fWriteBasket").and_then(|count| usize::try_from(count).ok()).unwrap_or(0);
    let mut places: Vec<(u64, StoredBasket)> = Vec::new();
    for (number, (&address, &len_bytes)) in addresses.iter().zip(lengths).enumerate().take(written) {
        let first_entry = first_entries.get(number).copied().unwrap_or(-1);
        let (Ok(address), Ok(len_bytes), Ok(start)) =
            (u64::try_from(address), u64::try_from(len_bytes), u64::try_from(first_entry))
        else {
            return Err(damaged(format!("basket {number} has no address")));
        };
        if address != 0 {
            places.push((start, StoredBasket::Alone { address, len_bytes }));
        }
    }
    for (number, embedded) in objects.array(branch, "fBaskets").iter().enumerate() {
        let Some(MemberValue::Basket(bytes)) =
            embedded.and_then(|id| objects.get(id)).and_then(|basket| basket.get("bytes"))
        else {
            continue;
        };
        // A basket that was written separately, or is empty.
        let is_alone = number < written && addresses.get(number).is_some_and(|&address| address != 0);
        if is_alone || embedded_entries(bytes)? == 0 {
            continue;
        }
        let start = first_entries.get(number).and_then(|&entry| u64::try_from(entry).ok());
        let start = start.ok_or_else(|| damaged(format!("basket {number} has no first entry")))?;
        places.push((start, StoredBasket::Embedded(bytes.clone())));
    }
    places.sort_by_key(|(start, _)| *start);
    let ends: Vec<u64> = places.iter().skip(1).map(|(start, _)| *start).chain([len_entries]).collect();
    if let Some((first, _)) = places.first()
        && *first != 0
    {
        return Err(damaged(format!("the first basket begins with entry {first}")));
    }
    let baskets: Vec<BasketPlace> =
        places.into_iter().zip(ends).map(|((start, stored), end)| BasketPlace { start, end, stored }).collect();
    match baskets.iter().find(|basket| basket.start > basket.end) {
        Some(basket) => Err(damaged(format!("a basket has entries {}..{}", basket.start, basket.end))),
        // Some writers create baskets without entries.
        None => Ok(baskets.into_iter().filter(|basket| basket.start < basket.end).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_of_single_leaves_are_understood() {
        let parsed = |title: &str| {
            let Leaf { class, len, is_unsigned, is_counted, .. } = Leaf::of_title("x", title)?;
            Some((class, len, is_unsigned, is_counted))
        };
        let leaf = |class: &str, len, is_unsigned, is_counted| Some((class.to_owned(), len, is_unsigned, is_counted));
        assert_eq!(parsed("x/D"), leaf("TLeafD", 1, false, false));
        assert_eq!(parsed("x/s"), leaf("TLeafS", 1, true, false));
        assert_eq!(parsed("x[3][2]/F"), leaf("TLeafF", 6, false, false));
        assert_eq!(parsed("x[n]/l"), leaf("TLeafL", 1, true, true));
        assert_eq!(parsed("x[n][4]/O"), leaf("TLeafO", 4, false, true));
        for other in ["x", "x/", "y/D", "x in m/S", "x/I:y/I", "x/d", "x[2][n]/F", "x[2/F", "x]/F", "vector<float>"] {
            assert_eq!(parsed(other), None, "{other}");
        }
    }
}
