//! Path resolution: follows hard and soft links until the path ends or leaves the file.
//!
//! No other files are opened. Invariant: resolution ends even if soft links form a cycle.

use crate::Result;
use crate::model::{FileTree, Link, LinkTarget, ObjectIndex, ObjectKind};

/// Maximum number of soft and external links followed along one path, over all files it passes through. This is
/// libhdf5's limit unless a program sets another one (`H5L_NUM_LINKS`).
pub const MAX_LINKS: u32 = 16;

/// Result of resolving a path.
#[derive(Debug, PartialEq, Eq)]
pub enum ResolvedPath {
    /// An object of the file.
    Object(ObjectIndex),
    /// A path in another file.
    External {
        /// File name as stored.
        file: Vec<u8>,
        /// Path within the other file.
        path: Vec<u8>,
        /// Number of links that may still be followed, including this one. This link may not be followed if it is 0.
        links_left: u32,
    },
    /// More soft links than the limit, as in a cycle.
    TooManyLinks,
    /// The path does not lead to an object.
    Nothing,
}

/// Resolves `path` from the group `start`, or from the root if it is absolute, following at most `max_links` links.
/// `link_of` returns the link with a name in a group, or `None` if there is none.
///
/// # Errors
/// If `link_of` fails.
pub fn find<'t>(
    start: ObjectIndex,
    path: &[u8],
    max_links: u32,
    link_of: impl Fn(ObjectIndex, &[u8]) -> Result<Option<&'t Link>>,
) -> Result<ResolvedPath> {
    find_within(start, path, &link_of, &mut max_links.clone())
}

fn find_within<'t>(
    start: ObjectIndex,
    path: &[u8],
    link_of: &impl Fn(ObjectIndex, &[u8]) -> Result<Option<&'t Link>>,
    links_left: &mut u32,
) -> Result<ResolvedPath> {
    let mut current = if path.first() == Some(&b'/') { 0 } else { start };
    let mut rest = path;
    while let Some((name, behind)) = next_name(rest) {
        rest = behind;
        if name == b"." {
            continue;
        }
        let Some(link) = link_of(current, name)? else { return Ok(ResolvedPath::Nothing) };
        match &link.target {
            LinkTarget::Hard(target) => current = *target,
            LinkTarget::Soft(target) => {
                let Some(left) = links_left.checked_sub(1) else { return Ok(ResolvedPath::TooManyLinks) };
                *links_left = left;
                match find_within(current, target, link_of, links_left)? {
                    ResolvedPath::Object(object) => current = object,
                    ResolvedPath::External { file, path, links_left } => {
                        return Ok(ResolvedPath::External { file, path: joined(path, rest), links_left });
                    }
                    found => return Ok(found),
                }
            }
            LinkTarget::External { file, path } => {
                let (file, path, links_left) = (file.clone(), joined(path.clone(), rest), *links_left);
                return Ok(ResolvedPath::External { file, path, links_left });
            }
            LinkTarget::UserDefined { .. } => return Ok(ResolvedPath::Nothing),
        }
    }
    Ok(ResolvedPath::Object(current))
}

/// Resolves an absolute path by linear search, for files in which only a few paths are looked up.
pub fn find_in(tree: &FileTree, path: &[u8]) -> Result<ResolvedPath> {
    find(0, path, MAX_LINKS, |group, name| {
        Ok(match tree.objects.get(group as usize).map(|object| &object.kind) {
            Some(ObjectKind::Group(group)) => group.links.iter().find(|link| link.name == name),
            _ => None,
        })
    })
}

/// Splits a path into its first name and the rest.
fn next_name(path: &[u8]) -> Option<(&[u8], &[u8])> {
    let begin = path.iter().position(|&byte| byte != b'/')?;
    let path = &path[begin..];
    let end = path.iter().position(|&byte| byte == b'/').unwrap_or(path.len());
    Some((&path[..end], &path[end..]))
}

/// Appends `rest`, which is empty or begins with a slash, to a path.
fn joined(mut path: Vec<u8>, rest: &[u8]) -> Vec<u8> {
    path.extend_from_slice(rest);
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_followed() {
        let link =
            |name: &[u8], target: LinkTarget| Link { name: name.to_vec(), utf8: false, creation_order: None, target };
        let external = LinkTarget::External { file: b"far.h5".to_vec(), path: b"/far".to_vec() };
        let groups = [
            vec![
                link(b"a", LinkTarget::Hard(1)),
                link(b"soft", LinkTarget::Soft(b"a/b".to_vec())),
                link(b"cycle", LinkTarget::Soft(b"/cycle".to_vec())),
                link(b"other", external),
                link(b"to other", LinkTarget::Soft(b"/other".to_vec())),
            ],
            vec![link(b"b", LinkTarget::Hard(2)), link(b"root", LinkTarget::Hard(0))],
            vec![],
        ];
        let lead = |path: &str| {
            let link_of =
                |group: ObjectIndex, name: &[u8]| Ok(groups[group as usize].iter().find(|link| link.name == name));
            find(0, path.as_bytes(), MAX_LINKS, link_of).unwrap()
        };
        for path in ["/a/b", "a//b/", "./a/./b", "soft", "/a/root/soft"] {
            assert_eq!(lead(path), ResolvedPath::Object(2), "{path}");
        }
        for path in ["/a/c", "/a/b/c", "cycled"] {
            assert_eq!(lead(path), ResolvedPath::Nothing, "{path}");
        }
        for path in ["cycle", "a/root/cycle/b"] {
            assert_eq!(lead(path), ResolvedPath::TooManyLinks, "{path}");
        }
        let away = |path: &[u8], links_left| ResolvedPath::External {
            file: b"far.h5".to_vec(),
            path: path.to_vec(),
            links_left,
        };
        assert_eq!((lead("other"), lead("/a/root/other/x")), (away(b"/far", 16), away(b"/far/x", 16)));
        assert_eq!(lead("to other/x"), away(b"/far/x", 15));
    }

    /// At most 16 links are followed, counted across all names of a path.
    #[test]
    fn as_many_links_as_libhdf5_follows() {
        let link = |name: String, target| Link { name: name.into_bytes(), utf8: false, creation_order: None, target };
        let mut links = vec![link("0".to_owned(), LinkTarget::Hard(0))];
        links.extend(
            (1..20).map(|number| link(number.to_string(), LinkTarget::Soft((number - 1).to_string().into_bytes()))),
        );
        let lead = |path: &str| {
            let link_of = |_, name: &[u8]| Ok(links.iter().find(|link| link.name == name));
            find(0, path.as_bytes(), MAX_LINKS, link_of).unwrap()
        };
        for (path, found) in [
            ("16", ResolvedPath::Object(0)),
            ("8/0/8", ResolvedPath::Object(0)),
            ("17", ResolvedPath::TooManyLinks),
            ("8/0/9", ResolvedPath::TooManyLinks),
        ] {
            assert_eq!(lead(path), found, "{path}");
        }
    }
}
