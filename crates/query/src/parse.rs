//! Conditions as text: `calE > 2 & (run == 1234 | ~(1 < nhit <= 5))`.
//!
//! `&`, `|` and `~` bind as in Python's expressions of arrays, but less strongly than comparisons, so that these need
//! no parentheses. `and`, `or` and `not` mean the same. Invariant: the text of a condition is parsed to that condition.

use crate::column_name::{is_initial, is_inner};
use crate::error::{QueryError, Result};
use crate::expression::{Expression, Literal, Operator};
use std::iter::Peekable;
use std::str::{CharIndices, FromStr};

/// Maximum depth of parentheses and negations.
const MAX_DEPTH: usize = 64;

impl FromStr for Expression {
    type Err = QueryError;

    fn from_str(text: &str) -> Result<Self> {
        let failed = |reason| QueryError::Condition { text: text.trim().to_owned(), reason };
        let mut parser = Parser { tokens: tokens(text).map_err(failed)?.into_iter().peekable(), depth: 0 };
        let parsed = parser.any().map_err(failed)?;
        match parser.tokens.next() {
            None => Ok(parsed),
            Some(token) => Err(failed(format!("{} is not expected after a condition", token.described()))),
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Name(String),
    Value(Literal),
    Operator(Operator),
    /// `true` or `false`, a condition by itself or a value.
    Truth(bool),
    And,
    Or,
    Not,
    Open,
    Close,
}

impl Token {
    fn described(&self) -> String {
        match self {
            Self::Name(name) => name.clone(),
            Self::Value(value) => value.to_string(),
            Self::Operator(operator) => operator.word().to_owned(),
            Self::Truth(truth) => truth.to_string(),
            Self::And => "&".to_owned(),
            Self::Or => "|".to_owned(),
            Self::Not => "~".to_owned(),
            Self::Open => "(".to_owned(),
            Self::Close => ")".to_owned(),
        }
    }
}

pub(crate) type ParseResult<T> = std::result::Result<T, String>;

fn tokens(text: &str) -> ParseResult<Vec<Token>> {
    let mut chars = text.char_indices().peekable();
    let mut found = Vec::new();
    while let Some((at, one)) = chars.next() {
        let mut follows = |wanted: char| chars.next_if(|(_, next)| *next == wanted).is_some();
        found.push(match one {
            _ if one.is_whitespace() => continue,
            '(' => Token::Open,
            ')' => Token::Close,
            '~' => Token::Not,
            '&' => {
                follows('&');
                Token::And
            }
            '|' => {
                follows('|');
                Token::Or
            }
            '<' if follows('=') => Token::Operator(Operator::LessOrEqual),
            '<' => Token::Operator(Operator::Less),
            '>' if follows('=') => Token::Operator(Operator::GreaterOrEqual),
            '>' => Token::Operator(Operator::Greater),
            '!' if follows('=') => Token::Operator(Operator::NotEqual),
            '!' => Token::Not,
            '=' if follows('=') => Token::Operator(Operator::Equal),
            '=' => return Err("write == to compare".to_owned()),
            '"' | '\'' => Token::Value(Literal::String(quoted(&mut chars, one)?)),
            '`' => Token::Name(quoted(&mut chars, one)?),
            '-' | '+' | '.' | '0'..='9' => {
                let is_in_number = |one: char, before: char| {
                    one.is_alphanumeric()
                        || matches!(one, '.' | '_')
                        || (matches!(one, '+' | '-') && matches!(before, 'e' | 'E'))
                };
                number(while_matching(&mut chars, at, one, text, is_in_number))?
            }
            _ if is_initial(one) => word(while_matching(&mut chars, at, one, text, |one, _| is_inner(one))),
            _ => return Err(format!("{one} is not expected; put the name of a column in backticks")),
        });
    }
    Ok(found)
}

/// Returns the text from `start` to the first character that does not satisfy `is_in`, which also receives the
/// character before it.
fn while_matching<'t>(
    chars: &mut Peekable<CharIndices<'_>>,
    start: usize,
    first: char,
    text: &'t str,
    is_in: impl Fn(char, char) -> bool,
) -> &'t str {
    let mut last = first;
    while let Some((_, one)) = chars.next_if(|(_, one)| is_in(*one, last)) {
        last = one;
    }
    &text[start..chars.peek().map_or(text.len(), |(at, _)| *at)]
}

/// Returns a quoted string, with the escapes of Rust's debug format.
pub(crate) fn quoted(chars: &mut Peekable<CharIndices<'_>>, quote: char) -> ParseResult<String> {
    let mut found = String::new();
    let unfinished = || format!("a {quote} is missing");
    loop {
        let (_, one) = chars.next().ok_or_else(unfinished)?;
        match one {
            _ if one == quote => return Ok(found),
            '\\' => match chars.next().ok_or_else(unfinished)?.1 {
                'n' => found.push('\n'),
                'r' => found.push('\r'),
                't' => found.push('\t'),
                '0' => found.push('\0'),
                'u' => {
                    let mut digits = String::new();
                    while let Some((_, digit)) = chars.next_if(|(_, one)| *one != '}' && *one != quote) {
                        digits.push(digit);
                    }
                    let code = u32::from_str_radix(digits.trim_start_matches('{'), 16).ok().and_then(char::from_u32);
                    let is_closed = chars.next_if(|(_, one)| *one == '}').is_some();
                    let code = code.filter(|_| is_closed && digits.starts_with('{'));
                    found.push(code.ok_or_else(|| format!("\\u{digits} is not a character"))?);
                }
                other => found.push(other),
            },
            _ => found.push(one),
        }
    }
}

fn word(word: &str) -> Token {
    match word.to_lowercase().as_str() {
        "and" => Token::And,
        "or" => Token::Or,
        "not" => Token::Not,
        "true" => Token::Truth(true),
        "false" => Token::Truth(false),
        "inf" => Token::Value(Literal::Float(f64::INFINITY)),
        "nan" => Token::Value(Literal::Float(f64::NAN)),
        _ => Token::Name(word.to_owned()),
    }
}

fn number(text: &str) -> ParseResult<Token> {
    let digits = text.replace('_', "");
    let unsigned = digits.trim_start_matches(['-', '+']);
    let hexadecimal = unsigned.strip_prefix("0x").and_then(|digits| i128::from_str_radix(digits, 16).ok());
    let hexadecimal = hexadecimal.map(|value| if digits.starts_with('-') { -value } else { value });
    let integer = hexadecimal.or_else(|| digits.parse().ok()).map(Literal::Integer);
    let literal = integer.or_else(|| digits.parse().ok().map(Literal::Float));
    literal.map(Token::Value).ok_or_else(|| format!("{text} is not a number"))
}

struct Parser {
    tokens: Peekable<std::vec::IntoIter<Token>>,
    depth: usize,
}

/// Side of a comparison.
enum Operand {
    Column(String),
    Value(Literal),
}

impl Parser {
    fn any(&mut self) -> ParseResult<Expression> {
        let mut parts = vec![self.all()?];
        while self.tokens.next_if_eq(&Token::Or).is_some() {
            parts.push(self.all()?);
        }
        Ok(single(parts, Expression::Or))
    }

    fn all(&mut self) -> ParseResult<Expression> {
        let mut parts = vec![self.one()?];
        while self.tokens.next_if_eq(&Token::And).is_some() {
            parts.push(self.one()?);
        }
        Ok(single(parts, Expression::And))
    }

    fn one(&mut self) -> ParseResult<Expression> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(format!("parentheses are nested more than {MAX_DEPTH} deep"));
        }
        let found = if self.tokens.next_if_eq(&Token::Not).is_some() {
            Expression::Not(Box::new(self.one()?))
        } else if self.tokens.next_if_eq(&Token::Open).is_some() {
            let inner = self.any()?;
            self.tokens.next_if_eq(&Token::Close).ok_or("a ) is missing")?;
            inner
        } else {
            self.comparison()?
        };
        self.depth -= 1;
        Ok(found)
    }

    /// Parses `a < 2` and chains such as `1 < a <= 5`.
    fn comparison(&mut self) -> ParseResult<Expression> {
        if let Some(Token::Truth(truth)) = self.tokens.peek() {
            let truth = *truth;
            self.tokens.next();
            if !matches!(self.tokens.peek(), Some(Token::Operator(_))) {
                return Ok(if truth { Expression::And(Vec::new()) } else { Expression::Or(Vec::new()) });
            }
            return self.chain(Operand::Value(Literal::Integer(truth.into())));
        }
        let first = self.operand()?;
        self.chain(first)
    }

    fn chain(&mut self, first: Operand) -> ParseResult<Expression> {
        let (mut left, mut parts) = (first, Vec::new());
        while let Some(Token::Operator(operator)) = self.tokens.next_if(|token| matches!(token, Token::Operator(_))) {
            let right = self.operand()?;
            let (column, operator, value) = match (&left, &right) {
                (Operand::Column(column), Operand::Value(value)) => (column, operator, value),
                (Operand::Value(value), Operand::Column(column)) => (column, operator.exchanged(), value),
                (Operand::Column(column), Operand::Column(other)) => {
                    (column, operator, &Literal::Column(other.clone()))
                }
                (Operand::Value(one), Operand::Value(other)) => {
                    return Err(format!("{one} and {other} are both values; name a column"));
                }
            };
            parts.push(Expression::Compare { column: column.clone(), operator, value: value.clone() });
            left = right;
        }
        match parts.is_empty() {
            false => Ok(single(parts, Expression::And)),
            true => Err(match left {
                Operand::Column(column) => format!("{column} is not compared with a value"),
                Operand::Value(value) => format!("{value} is not compared with a column"),
            }),
        }
    }

    fn operand(&mut self) -> ParseResult<Operand> {
        match self.tokens.next() {
            Some(Token::Name(name)) => Ok(Operand::Column(name)),
            Some(Token::Value(value)) => Ok(Operand::Value(value)),
            Some(Token::Truth(truth)) => Ok(Operand::Value(Literal::Integer(truth.into()))),
            Some(token) => Err(format!("{} stands where a column or value is expected", token.described())),
            None => Err("it ends where a column or value is expected".to_owned()),
        }
    }
}

fn single(mut parts: Vec<Expression>, join: fn(Vec<Expression>) -> Expression) -> Expression {
    match parts.len() {
        1 => parts.remove(0),
        _ => join(parts),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column_name::RESERVED;
    use proptest::prelude::*;

    fn text(text: &str) -> String {
        text.parse::<Expression>().map_or_else(|error| error.to_string(), |parsed| parsed.to_string())
    }

    #[test]
    fn operators_bind_like_those_of_arrays_and_comparisons_first() {
        assert_eq!(text("a > 2 & b == 1 | ~c <= -1.5"), "(((a > 2) & (b == 1)) | ~(c <= -1.5))");
        assert_eq!(text("a>2 and (b==1 or not c<=1e3)"), "((a > 2) & ((b == 1) | ~(c <= 1000.0)))");
        assert_eq!(text("1 < rec.slc/x <= 5"), "((rec.slc/x > 1) & (rec.slc/x <= 5))");
        assert_eq!(text("'near' == det && is_good != true"), "((det == \"near\") & (is_good != 1))");
        assert_eq!(text("`a b` >= 0x10 & inf > e"), "((`a b` >= 16) & (e < inf))");
        assert_eq!(text("a < b <= `inf`"), "((a < b) & (b <= `inf`))");
        assert_eq!((text("true").as_str(), text("~false").as_str()), ("true", "~false"));
    }

    #[test]
    fn what_is_not_a_condition_is_refused() {
        for (input, reason) in [
            ("", "ends where a column"),
            ("a", "a is not compared with a value"),
            ("a = 2", "write == to compare"),
            ("1 > 2", "both values"),
            ("(a > 1", "a ) is missing"),
            ("a > 1)", ") is not expected after"),
            ("a > 1 b", "b is not expected after"),
            ("a > 'x", "a ' is missing"),
            ("a > 1x", "1x is not a number"),
            ("a # 1", "# is not expected"),
            ("a > & 2", "& stands where"),
            ("a == '\\u{d800}'", "is not a character"),
        ] {
            assert!(text(input).contains(reason), "{input}: {}", text(input));
        }
        let deep = format!("{}a > 1{}", "(".repeat(100_000), ")".repeat(100_000));
        assert!(text(&deep).contains("nested more than"));
    }

    fn expressions() -> impl Strategy<Value = Expression> {
        let values = prop_oneof![
            (i128::MIN + 1..i128::MAX).prop_map(Literal::Integer),
            any::<f64>().prop_filter("NaN differs from itself", |value| !value.is_nan()).prop_map(Literal::Float),
            any::<String>().prop_map(Literal::String),
            any::<String>().prop_map(Literal::Column),
        ];
        let names = prop_oneof![
            any::<String>(),
            "[a-z_/][a-z./]{0,5}",
            prop::sample::select(&RESERVED[..]).prop_map(str::to_owned)
        ];
        let compare = (names, prop::sample::select(Operator::ALL.to_vec()), values);
        let leaf = compare.prop_map(|(column, operator, value)| Expression::Compare { column, operator, value });
        leaf.prop_recursive(4, 20, 3, |inner| {
            let several = prop::collection::vec(inner.clone(), 2..4);
            prop_oneof![
                several.clone().prop_map(Expression::And),
                several.prop_map(Expression::Or),
                inner.prop_map(|one| Expression::Not(Box::new(one))),
                Just(Expression::And(Vec::new())),
                Just(Expression::Or(Vec::new())),
            ]
        })
    }

    proptest! {
        #[test]
        fn a_condition_is_read_back_from_its_text(condition in expressions()) {
            prop_assert_eq!(condition.to_string().parse::<Expression>().unwrap(), condition);
        }

        #[test]
        fn any_text_is_parsed_or_refused(input in "[-a-z0-9 <>=!&|~()'\"`.\\\\]{0,30}") {
            let _ = input.parse::<Expression>();
        }
    }
}
