//! Names of C++ types as ROOT writes them: `vector<pair<int,string> >`.
//!
//! Invariant: a name that is not recognised becomes [`TypeName::Class`], never anything else.

use raddle_columns::schema::Number;

/// Parsed name of a C++ type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TypeName {
    Number(Number),
    /// `Double32_t`; in names of types, it has no range.
    Double32,
    /// `Float16_t`; in names of types, it has no range.
    Float16,
    /// `std::string`.
    String,
    /// ROOT's own string, which has no header as a member of an object.
    TString,
    /// Sequence or set.
    List(Box<TypeName>),
    /// Map or multimap.
    Map(Box<TypeName>, Box<TypeName>),
    Pair(Box<TypeName>, Box<TypeName>),
    Class(String),
}

/// Maximum depth of types within types.
const MAX_DEPTH: usize = 16;

impl TypeName {
    /// Parses a name.
    pub(super) fn parse(name: &str) -> Self {
        parse(name, 0)
    }
}

/// Returns whether a class is a collection of the standard library, or one of ROOT's classes that is stored like one,
/// with any elements.
pub fn is_collection(class: &str) -> bool {
    matches!(TypeName::parse(class), TypeName::List(_) | TypeName::Map(..))
}

fn parse(name: &str, depth: usize) -> TypeName {
    let bare = name.trim();
    let class = || TypeName::Class(bare.to_owned());
    let plain = bare.strip_prefix("std::").unwrap_or(bare);
    if let Some(number) = number(plain) {
        return TypeName::Number(number);
    }
    match plain {
        "string" => return TypeName::String,
        "TString" => return TypeName::TString,
        "Double32_t" => return TypeName::Double32,
        "Float16_t" => return TypeName::Float16,
        _ => {}
    }
    let Some((outer, arguments)) = plain.strip_suffix('>').and_then(|rest| rest.split_once('<')) else {
        return class();
    };
    if depth == MAX_DEPTH {
        return class();
    }
    let arguments = split(arguments);
    let inner = |number: usize| Box::new(parse(arguments[number], depth + 1));
    match (outer.trim(), arguments.len()) {
        (
            "vector" | "list" | "deque" | "set" | "multiset" | "unordered_set" | "unordered_multiset" | "forward_list"
            | "ROOT::VecOps::RVec" | "ROOT::RVec" | "VecOps::RVec" | "RVec",
            1..,
        ) => TypeName::List(inner(0)),
        ("map" | "multimap" | "unordered_map" | "unordered_multimap", 2..) => TypeName::Map(inner(0), inner(1)),
        ("pair", 2) => TypeName::Pair(inner(0), inner(1)),
        _ => class(),
    }
}

/// Splits arguments at the commas that are not inside brackets.
fn split(arguments: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0usize);
    for (at, letter) in arguments.char_indices() {
        match letter {
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(&arguments[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&arguments[start..]);
    parts
}

/// Parses the name of a built-in type. `long` has 8 bytes in files.
fn number(name: &str) -> Option<Number> {
    Some(match name {
        "bool" | "Bool_t" => Number::Bool,
        "char" | "Char_t" | "signed char" | "int8_t" => Number::Int8,
        "unsigned char" | "UChar_t" | "uint8_t" => Number::Uint8,
        "short" | "Short_t" | "int16_t" => Number::Int16,
        "unsigned short" | "UShort_t" | "uint16_t" => Number::Uint16,
        "int" | "Int_t" | "int32_t" => Number::Int32,
        "unsigned int" | "unsigned" | "UInt_t" | "uint32_t" => Number::Uint32,
        "long" | "long long" | "Long_t" | "Long64_t" | "int64_t" => Number::Int64,
        "unsigned long" | "unsigned long long" | "ULong_t" | "ULong64_t" | "uint64_t" => Number::Uint64,
        "float" | "Float_t" => Number::Float32,
        "double" | "Double_t" => Number::Float64,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_understood() {
        let number = |number| Box::new(TypeName::Number(number));
        let cases = [
            ("vector<float>", TypeName::List(number(Number::Float32))),
            ("std::vector<int,allocator<int> >", TypeName::List(number(Number::Int32))),
            ("map<unsigned int,string>", TypeName::Map(number(Number::Uint32), Box::new(TypeName::String))),
            (
                "vector<vector<pair<int, Long64_t> > >",
                TypeName::List(Box::new(TypeName::List(Box::new(TypeName::Pair(
                    number(Number::Int32),
                    number(Number::Int64),
                ))))),
            ),
            ("ROOT::VecOps::RVec<float>", TypeName::List(number(Number::Float32))),
            ("ROOT::RVec<vector<bool> >", TypeName::List(Box::new(TypeName::List(number(Number::Bool))))),
            ("MyRVec<float>", TypeName::Class("MyRVec<float>".to_owned())),
            ("Track", TypeName::Class("Track".to_owned())),
            ("vector<Track*>", TypeName::List(Box::new(TypeName::Class("Track*".to_owned())))),
            ("bitset<16>", TypeName::Class("bitset<16>".to_owned())),
            ("vector<", TypeName::Class("vector<".to_owned())),
            (">", TypeName::Class(">".to_owned())),
            ("map<int>", TypeName::Class("map<int>".to_owned())),
        ];
        for (name, expected) in cases {
            assert_eq!(TypeName::parse(name), expected, "{name}");
        }
        TypeName::parse(&"vector<".repeat(10_000));
    }
}
