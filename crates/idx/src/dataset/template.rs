//! File names: from the template of a header and a block number to the path of a file, and from a name back to the time
//! step.
//!
//! Invariant: a path never leads out of the folder of the `.idx` file; templates that could do so are refused.

use std::path::PathBuf;

/// Reason why a template of file names, or of folders of time steps, is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TemplateError {
    /// The template is absolute or contains `..`, so it could name any file.
    #[error("{template:?} leads out of the folder of the .idx file")]
    Outside {
        /// Text of the template.
        template: String,
    },
    /// A `%` does not begin a supported conversion.
    #[error("{template:?} contains a conversion other than {expected}")]
    Conversion {
        /// Text of the template.
        template: String,
        /// Supported conversion.
        expected: &'static str,
    },
    /// The name is empty, contains a null byte or a line break, or is too long for any file system.
    #[error("{template:?} is not a valid file name")]
    Name {
        /// Text of the template.
        template: String,
    },
}

/// Maximum length of a template: the longest path of Linux (PATH_MAX).
const MAX_TEMPLATE_LEN_BYTES: usize = 4096;

/// Maximum number of digits of a conversion, enough for any block number.
const MAX_DIGITS: usize = 16;

#[derive(Debug, Clone, PartialEq, Eq)]
enum TemplatePart {
    Text(String),
    /// A number of this many digits, padded with zeros.
    Number(usize),
}

impl TemplatePart {
    /// Returns the text of the part; empty for a number.
    fn text(&self) -> &str {
        match self {
            Self::Text(text) => text,
            Self::Number(_) => "",
        }
    }

    /// Returns the number of digits; `None` if the part is not a number.
    fn digits(&self) -> Option<usize> {
        match self {
            Self::Text(_) => None,
            Self::Number(digits) => Some(*digits),
        }
    }
}

/// Splits a relative path with conversions of one kind into parts, and checks it.
fn parts(template: &str, kind: char, expected: &'static str) -> Result<Vec<TemplatePart>, TemplateError> {
    let quoted = || template.chars().take(200).collect::<String>();
    if template.is_empty() || template.len() > MAX_TEMPLATE_LEN_BYTES || template.contains(['\0', '\n', '\r']) {
        return Err(TemplateError::Name { template: quoted() });
    }
    if template.starts_with('/') || template.split('/').any(|name| name == "..") || template.contains('$') {
        return Err(TemplateError::Outside { template: quoted() });
    }
    let mut parts = Vec::new();
    let mut pieces = template.split('%');
    parts.push(TemplatePart::Text(pieces.next().unwrap_or_default().to_owned()));
    for piece in pieces {
        let wrong = || TemplateError::Conversion { template: quoted(), expected };
        let (width, text) = piece.split_once(kind).ok_or_else(wrong)?;
        let digits = match width {
            "" => 1,
            _ => width.parse().ok().filter(|digits| (1..=MAX_DIGITS).contains(digits)).ok_or_else(wrong)?,
        };
        parts.push(TemplatePart::Number(digits));
        parts.push(TemplatePart::Text(text.to_owned()));
    }
    Ok(parts)
}

/// Template of the file names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileTemplate {
    text: String,
    parts: Vec<TemplatePart>,
}

impl FileTemplate {
    /// Parses `./NAME/%04x.bin`, with any number of hexadecimal conversions; without any, one file holds all blocks.
    ///
    /// # Errors
    /// If it is not a valid file name, leads out of the folder, or contains other conversions.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        let relative = text.strip_prefix("$(CurrentFileDirectory)/").unwrap_or(text);
        // Stripped before checking for absolute paths: `.//x` must not become `/x`.
        let relative = relative.strip_prefix("./").unwrap_or(relative);
        let parts = parts(relative, 'x', "hexadecimal, as %04x")?;
        let is_folder = matches!(parts.last(), Some(TemplatePart::Text(last)) if last.ends_with('/'));
        if is_folder || matches!(relative, "." | "./") {
            return Err(TemplateError::Name { template: text.to_owned() });
        }
        Ok(Self { text: text.to_owned(), parts })
    }

    /// Returns the template that OpenVisus uses for files next to `NAME.idx` with `block_bits` bits of block number:
    /// folders of 256 entries while more than 16 bits are left.
    ///
    /// # Errors
    /// If `name` is not a valid file name.
    pub(crate) fn for_name(name: &str, block_bits: u32) -> Result<Self, TemplateError> {
        let folders = block_bits.saturating_sub(16).div_ceil(8);
        Self::parse(&format!("./{name}{}/%04x.bin", "/%02x".repeat(folders as usize)))
    }

    /// Returns the text of the template in the header.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns whether the name depends on the block number.
    pub(crate) fn has_conversions(&self) -> bool {
        self.parts.len() > 1
    }

    /// Returns whether a path relative to the folder of the `.idx` file can result from this template for some block
    /// and time step.
    pub(crate) fn may_name(&self, path: &str) -> bool {
        let Some(rest) = path.strip_prefix(self.parts.first().map_or("", TemplatePart::text)) else { return false };
        let [.., number, last] = self.parts.as_slice() else { return rest.is_empty() };
        let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        let digits = number.digits().unwrap_or(0);
        let rest = rest.strip_suffix(last.text()).map(str::as_bytes);
        rest.and_then(|rest| rest.get(rest.len().checked_sub(digits)?..)).is_some_and(|end| end.iter().all(is_digit))
    }

    /// Returns the folder that contains all files of a time step, relative to the folder of the `.idx` file, and the
    /// beginning of the names in it; `time` is the folder of the time step, or empty.
    pub(crate) fn fixed_folder(&self, time: &str) -> (PathBuf, String) {
        let fixed = format!("{}{time}", self.parts.first().map_or("", TemplatePart::text));
        let (folder, beginning) = fixed.rsplit_once('/').unwrap_or(("", &fixed));
        (PathBuf::from(folder), beginning.to_owned())
    }

    /// Returns whether `name`, without the beginning that [`FileTemplate::fixed_folder`] returns, begins with the
    /// digits of a block number.
    pub(crate) fn begins_with_number(&self, name: &str) -> bool {
        let digits = self.parts.iter().find_map(TemplatePart::digits);
        let digits = digits.and_then(|digits| name.as_bytes().get(..digits));
        digits.is_some_and(|digits| digits.iter().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f')))
    }

    /// Returns the text after the number, in which every file name ends.
    pub fn ending(&self) -> &str {
        let Some(TemplatePart::Text(last)) = self.parts.last() else { return "" };
        last.rsplit('/').next().unwrap_or(last)
    }

    /// Returns the path, relative to the folder of the `.idx` file, of the file whose first block is `first_block`;
    /// `time` is the folder of the time step, or empty.
    ///
    /// The number's digits fill the conversions from the right; remaining digits become folders before the leftmost
    /// one.
    pub fn path(&self, first_block: u64, time: &str) -> PathBuf {
        let mut left = first_block;
        let mut filled = String::new();
        let mut leftmost_digits = 0;
        for (index, part) in self.parts.iter().enumerate().rev() {
            match part {
                TemplatePart::Text(text) if index > 0 => filled.insert_str(0, text),
                TemplatePart::Text(_) => {}
                TemplatePart::Number(digits) => {
                    filled.insert_str(0, &take_digits(&mut left, *digits));
                    leftmost_digits = *digits;
                }
            }
        }
        while left > 0 && leftmost_digits > 0 {
            filled.insert_str(0, &format!("{}/", take_digits(&mut left, leftmost_digits)));
        }
        let before = match &self.parts[0] {
            TemplatePart::Text(text) => text.as_str(),
            TemplatePart::Number(_) => "",
        };
        PathBuf::from(format!("{before}{time}{filled}"))
    }
}

/// Removes the lowest `digits` hexadecimal digits from `number` and returns them.
fn take_digits(number: &mut u64, digits: usize) -> String {
    let bits = 4 * digits as u32;
    let low = if bits >= u64::BITS { *number } else { *number & ((1 << bits) - 1) };
    *number = number.checked_shr(bits).unwrap_or(0);
    format!("{low:0digits$x}")
}

/// Template of the folders of time steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimeTemplate {
    text: String,
    parts: Vec<TemplatePart>,
}

impl TimeTemplate {
    /// Parses `time_%04d/`, with one decimal conversion.
    ///
    /// # Errors
    /// As for [`FileTemplate::parse`].
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        let expected = "one decimal, as %04d";
        let parts = parts(text, 'd', expected)?;
        if parts.len() != 3 {
            return Err(TemplateError::Conversion { template: text.to_owned(), expected });
        }
        Ok(Self { text: text.to_owned(), parts })
    }

    /// Returns the text of the template in the header.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the folder of a time step, or the beginning of its file names.
    pub fn name(&self, time: u64) -> String {
        let write = |part: &TemplatePart| match part {
            TemplatePart::Text(text) => text.clone(),
            TemplatePart::Number(digits) => format!("{time:0digits$}"),
        };
        self.parts.iter().map(write).collect()
    }
}

/// Name patterns by which the time steps of a dataset are found in their folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepNames {
    /// The folder, relative to the folder of the `.idx` file; empty for the same folder.
    pub folder: PathBuf,
    before: String,
    digits: usize,
    /// Patterns that may follow the number of a step.
    endings: Vec<Vec<TemplatePart>>,
}

impl StepNames {
    /// Creates the patterns for these templates.
    pub fn new(files: &FileTemplate, time: &TimeTemplate) -> Self {
        let text = |part: Option<&TemplatePart>| part.map_or("", TemplatePart::text).to_owned();
        let fixed = text(files.parts.first()) + &text(time.parts.first());
        let (folder, before) = fixed.rsplit_once('/').unwrap_or(("", &fixed));
        let digits = time.parts.iter().find_map(TemplatePart::digits).unwrap_or(1);
        let behind = TemplatePart::Text(text(time.parts.last()));
        let of_block = files.parts.get(1..).unwrap_or_default();
        let mut endings = vec![first_name(std::iter::once(&behind).chain(of_block))];
        if let (TemplatePart::Text(text), Some(number)) = (&behind, of_block.first())
            && !text.contains('/')
        {
            // Digits that do not fit the template become leading folders.
            endings.push(vec![behind.clone(), number.clone()]);
        }
        Self { folder: PathBuf::from(folder), before: before.to_owned(), digits, endings }
    }

    /// Returns the time step to which a name in the folder belongs, if any.
    pub fn step(&self, name: &str) -> Option<u64> {
        let rest = name.strip_prefix(&self.before)?;
        self.endings.iter().find_map(|ending| {
            let len: usize = ending.iter().map(|part| part.digits().unwrap_or_else(|| part.text().len())).sum();
            let (number, mut rest) = rest.split_at_checked(rest.len().checked_sub(len)?)?;
            for part in ending {
                rest = match part {
                    TemplatePart::Text(text) => rest.strip_prefix(text.as_str())?,
                    TemplatePart::Number(digits) => {
                        let (number, rest) = rest.split_at_checked(*digits)?;
                        number.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f')).then_some(rest)?
                    }
                };
            }
            let step: u64 = number.parse().ok()?;
            (number == format!("{step:0digits$}", digits = self.digits)).then_some(step)
        })
    }
}

/// Returns the parts up to the end of the first path component.
fn first_name<'p>(parts: impl Iterator<Item = &'p TemplatePart>) -> Vec<TemplatePart> {
    let mut name = Vec::new();
    for part in parts {
        if let Some((before, _)) = part.text().split_once('/') {
            name.push(TemplatePart::Text(before.to_owned()));
            break;
        }
        name.push(part.clone());
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(template: &str, block: u64, time: &str) -> String {
        FileTemplate::parse(template).unwrap().path(block, time).display().to_string()
    }

    #[test]
    fn numbers_fill_conversions_from_the_right() {
        assert_eq!(path("./a/%04x.bin", 0x20, ""), "a/0020.bin");
        assert_eq!(path("./a/%02x/%04x.bin", 0x12_3456, ""), "a/12/3456.bin");
        assert_eq!(path("./a/%04x.bin", 0x1_2345_6789, ""), "a/0001/2345/6789.bin");
        assert_eq!(path("./a/%02x/%02x.bin", 0x12_3456, ""), "a/12/34/56.bin");
        assert_eq!(path("./a/%04x.bin", 0x10, "time_0003/"), "a/time_0003/0010.bin");
        assert_eq!(path("./one.bin", 0, ""), "one.bin");
        assert_eq!(path("$(CurrentFileDirectory)/a/%x.bin", 0xab, ""), "a/a/b.bin");
        assert_eq!(FileTemplate::for_name("n", 16).unwrap().text(), "./n/%04x.bin");
        assert_eq!(FileTemplate::for_name("n", 33).unwrap().text(), "./n/%02x/%02x/%02x/%04x.bin");
    }

    #[test]
    fn names_of_blocks_are_known() {
        let may_name = |template: &str, path: &str| FileTemplate::parse(template).unwrap().may_name(path);
        for block_file in ["a/0010.bin", "a/0001/2345.bin", "a/time_0003/0000.bin"] {
            assert!(may_name("./a/%04x.bin", block_file), "{block_file}");
        }
        for other in ["b/0010.bin", "a/picture.bin", "a/0010.npy", "a/010.bin", "0010.bin"] {
            assert!(!may_name("./a/%04x.bin", other), "{other}");
        }
        assert!(may_name("one.bin", "one.bin") && !may_name("one.bin", "two.bin") && !may_name("%04x.bin", "raw.bin"));
    }

    #[test]
    fn numbers_follow_the_fixed_folder() {
        let fixed = |template: &str, time: &str| {
            let (folder, beginning) = FileTemplate::parse(template).unwrap().fixed_folder(time);
            (folder.display().to_string(), beginning)
        };
        let pair = |folder: &str, beginning: &str| (folder.to_owned(), beginning.to_owned());
        assert_eq!(fixed("./sub/a/%02x/%04x.bin", ""), pair("sub/a", ""));
        assert_eq!(fixed("./a/%04x.bin", "time_0003/"), pair("a/time_0003", ""));
        assert_eq!(fixed("./a/b_%04x.bin", "t7"), pair("a", "b_t7"));
        assert_eq!(fixed("%04x.bin", ""), pair("", ""));
        assert_eq!(fixed("./one.bin", ""), pair("", "one.bin"));
        let begins = |template: &str, name: &str| FileTemplate::parse(template).unwrap().begins_with_number(name);
        assert!(begins("./a/%02x/%04x.bin", "0f") && begins("%04x.bin", "0001.bin"));
        assert!(!begins("%04x.bin", "0f") && !begins("%04x.bin", "news") && !begins("./one.bin", ""));
    }

    #[test]
    fn time_steps() {
        let time = TimeTemplate::parse("time%09d/").unwrap();
        assert_eq!(time.name(12), "time000000012/");
        assert_eq!(TimeTemplate::parse("t%d").unwrap().name(7), "t7");
        assert!(TimeTemplate::parse("time/").is_err());
        assert!(TimeTemplate::parse("%d%d/").is_err());
        assert!(matches!(TimeTemplate::parse("../%d/"), Err(TemplateError::Outside { .. })));
    }

    #[test]
    fn names_contain_the_time_step() {
        let names = |files: &str, time: &str| {
            StepNames::new(&FileTemplate::parse(files).unwrap(), &TimeTemplate::parse(time).unwrap())
        };
        let of_folders = names("./a/%02x/%04x.bin", "time_%04d/");
        assert_eq!(of_folders.folder, PathBuf::from("a"));
        let known =
            [("time_0003", Some(3)), ("time_20261124", Some(20_261_124)), ("time_00003", None), ("time_3", None)];
        let others =
            [("time_", None), ("time_0003x", None), ("x", None), ("", None), ("time_+003", None), ("time_é003", None)];
        for (name, step) in known.into_iter().chain(others) {
            assert_eq!(of_folders.step(name), step, "{name}");
        }
        assert_eq!(names("./%04x.bin", "a/b%d/c/").folder, PathBuf::from("a"));
        assert_eq!(names("./%04x.bin", "a/b%d/c/").step("b12"), Some(12));
        // Without a folder per step, the block number follows, and folders for its excess digits.
        let in_a_folder = names("./a/%04x.bin", "t%d");
        assert_eq!(
            [in_a_folder.step("t70000.bin"), in_a_folder.step("t12000f"), in_a_folder.step("t0000.bin")],
            [Some(7), Some(12), None]
        );
        assert_eq!(names("./a/t%02x/%04x.bin", "%d_").step("3_t00"), None, "the text is before the time");
        assert_eq!(names("./a/t%02x/%04x.bin", "%d_").step("t3_00"), Some(3));
    }

    #[test]
    fn every_path_names_its_step() {
        for (files, time) in
            [("./a/%04x.bin", "t%d"), ("%02x%02x", "%03d-"), ("a/b/%x/c%04x.bin", "d/%d/e"), ("x%04x", "%d/")]
        {
            let (files, time) = (FileTemplate::parse(files).unwrap(), TimeTemplate::parse(time).unwrap());
            let names = StepNames::new(&files, &time);
            for (step, block) in [(0, 0), (7, 0x1234), (1000, 0xffff), (u64::MAX, 1)] {
                let path = files.path(block, &time.name(step));
                let name = path.strip_prefix(&names.folder).unwrap().components().next().unwrap();
                assert_eq!(names.step(name.as_os_str().to_str().unwrap()), Some(step), "{path:?}");
            }
        }
    }

    #[test]
    fn hostile_templates_are_refused() {
        let outside =
            ["/etc/%04x", "../%04x.bin", "a/../../%x", "$(HOME)/%x", ".//etc/%x", "$(CurrentFileDirectory)//etc/%x"];
        for outside in outside {
            assert!(matches!(FileTemplate::parse(outside), Err(TemplateError::Outside { .. })), "{outside}");
        }
        for conversion in ["%s.bin", "%", "%99999999999x", "%0017x", "%-4x", "%04d.bin"] {
            assert!(matches!(FileTemplate::parse(conversion), Err(TemplateError::Conversion { .. })), "{conversion}");
        }
        for name in ["", "./", "a/%04x/", "a\0%x", "a\nb/%04x", "a\r/%x", &"a".repeat(5000)] {
            assert!(matches!(FileTemplate::parse(name), Err(TemplateError::Name { .. })), "{name}");
        }
    }
}
