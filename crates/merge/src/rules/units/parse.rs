//! Parser of units.
//!
//! Grammar: a product is a sequence of powers, evaluated from left to right, which may be separated by `*`, `.`, `·`,
//! `/` or `per`; a power is a number, a name or a product in parentheses, with an exponent as in `m2`, `m-2`, `m^2`,
//! `m**2`, `m²`. Names are looked up without a prefix first. Full names are case-insensitive and may be plural; symbols
//! are neither. Invariant: the whole text must parse.

use super::table::{PREFIXES, UNITS};
use super::{BASES, Exact, Unit};

/// Maximum nesting depth of parentheses and definitions.
const MAX_NESTED: u32 = 16;

/// Parses a unit.
pub fn unit(text: &str) -> Option<Unit> {
    nested(text, MAX_NESTED)
}

fn nested(text: &str, depth: u32) -> Option<Unit> {
    let mut parser = Parser { rest: text.trim(), depth: depth.checked_sub(1)? };
    let unit = parser.product()?;
    parser.rest.is_empty().then_some(unit)
}

struct Parser<'t> {
    rest: &'t str,
    depth: u32,
}

impl<'t> Parser<'t> {
    fn product(&mut self) -> Option<Unit> {
        let mut product = self.power()?;
        loop {
            self.rest = self.rest.trim_start();
            let divides = self.take("/") || self.take_per();
            let is_joined = divides || self.take("*") || self.take(".") || self.take("·");
            if !is_joined && (self.rest.is_empty() || self.rest.starts_with(')')) {
                return Some(product);
            }
            self.rest = self.rest.trim_start();
            let next = self.power()?;
            product = product.times(if divides { next.power(-1)? } else { next })?;
        }
    }

    fn power(&mut self) -> Option<Unit> {
        let base = if self.take("(") {
            self.depth = self.depth.checked_sub(1)?;
            let inner = self.product()?;
            if !self.take(")") {
                return None;
            }
            inner
        } else if self.rest.starts_with(|first: char| first.is_ascii_digit() || first == '.') {
            let number = Unit::number(self.number()?);
            return if self.take("^") || self.take("**") { number.power(self.exponent()?) } else { Some(number) };
        } else {
            let name = self.name()?;
            named(name, self.depth)?
        };
        if self.take("^") || self.take("**") {
            return base.power(self.exponent()?);
        }
        if let Some(exponent) = self.superscript() {
            return base.power(exponent?);
        }
        match self.rest.starts_with(|next: char| next.is_ascii_digit() || next == '-' || next == '+') {
            true => base.power(self.exponent()?),
            false => Some(base),
        }
    }

    /// Consumes `word` if it comes next, and returns whether it does.
    fn take(&mut self, word: &str) -> bool {
        // `**` is exponentiation.
        if word == "*" && self.rest.starts_with("**") {
            return false;
        }
        let rest = self.rest.strip_prefix(word);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn take_per(&mut self) -> bool {
        let rest = self.rest.strip_prefix("per").or_else(|| self.rest.strip_prefix("PER"));
        let rest = rest.filter(|rest| rest.starts_with(' '));
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// Parses an unsigned decimal number.
    fn number(&mut self) -> Option<Exact> {
        let whole = self.digits();
        let after_point =
            if self.rest.starts_with('.') { self.rest[1..].bytes().take_while(u8::is_ascii_digit).count() } else { 0 };
        let mut fraction = "";
        if after_point > 0 || self.rest.starts_with('.') && !whole.is_empty() && !continues_with_name(&self.rest[1..]) {
            fraction = &self.rest[1..=after_point];
            self.rest = &self.rest[1 + after_point..];
        }
        let digits = format!("{whole}{fraction}").parse().ok()?;
        let mut exponent = -i32::try_from(fraction.len()).ok()?;
        if let Some(rest) = self.rest.strip_prefix(['e', 'E']) {
            let signless = rest.strip_prefix(['+', '-']).unwrap_or(rest);
            if signless.starts_with(|next: char| next.is_ascii_digit()) {
                let is_negative = rest.starts_with('-');
                self.rest = signless;
                let power: i32 = self.digits().parse().ok()?;
                exponent = exponent.checked_add(if is_negative { -power } else { power })?;
            }
        }
        Exact::decimal(digits, exponent)
    }

    fn digits(&mut self) -> String {
        let len = self.rest.bytes().take_while(u8::is_ascii_digit).count();
        let (digits, rest) = self.rest.split_at(len);
        self.rest = rest;
        digits.to_owned()
    }

    fn exponent(&mut self) -> Option<i8> {
        let is_negative = self.take("-");
        if !is_negative {
            self.take("+");
        }
        let exponent: i8 = self.digits().parse().ok()?;
        Some(if is_negative { -exponent } else { exponent })
    }

    /// Parses an exponent in superscript digits, if one comes next; the inner `None` stands for a malformed exponent.
    fn superscript(&mut self) -> Option<Option<i8>> {
        let raised = "⁰¹²³⁴⁵⁶⁷⁸⁹";
        let plain = |character: char| match character {
            '⁻' => Some('-'),
            '⁺' => Some('+'),
            digit => raised.chars().position(|raised| raised == digit).map(|value| char::from(b'0' + value as u8)),
        };
        let text: String = self.rest.chars().map_while(plain).collect();
        if text.is_empty() {
            return None;
        }
        let end = self.rest.find(|next| plain(next).is_none()).unwrap_or(self.rest.len());
        self.rest = &self.rest[end..];
        Some(text.parse().ok())
    }

    /// Parses a name: letters, signs such as `%` and `°`, and digits that are followed by a letter.
    fn name(&mut self) -> Option<&'t str> {
        let is_letter = |character: char| character.is_alphabetic() || "_%°'\"′″℃℉".contains(character);
        let run = self.rest.find(|next: char| !is_letter(next) && !next.is_ascii_digit()).unwrap_or(self.rest.len());
        let end = self.rest[..run]
            .rfind(is_letter)
            .map(|last| last + self.rest[last..].chars().next().map_or(0, char::len_utf8))?;
        let (name, rest) = self.rest.split_at(end);
        self.rest = rest;
        Some(name)
    }
}

fn continues_with_name(rest: &str) -> bool {
    rest.starts_with(|next: char| next.is_alphabetic())
}

/// Looks up a unit by name.
fn named(name: &str, depth: u32) -> Option<Unit> {
    if let Some(unit) = known(name, depth) {
        return Some(unit);
    }
    // The longest matching prefix wins: `da` before `d`.
    let mut prefixes: Vec<_> = PREFIXES
        .iter()
        .flat_map(|(full, symbols, exponent)| {
            let full = without_prefix(name, full).map(|rest| (full.len(), rest, *exponent));
            let by_symbol = |symbol: &&str| Some((symbol.len(), name.strip_prefix(*symbol)?, *exponent));
            full.into_iter().chain(symbols.iter().filter_map(by_symbol)).collect::<Vec<_>>()
        })
        .collect();
    prefixes.sort_by_key(|(len, ..)| std::cmp::Reverse(*len));
    prefixes.into_iter().find_map(|(_, rest, exponent)| {
        let unit = known(rest, depth)?;
        Unit::number(Exact::decimal(1, exponent)?).times(unit)
    })
}

fn without_prefix<'n>(name: &'n str, prefix: &str) -> Option<&'n str> {
    let (start, rest) = name.split_at_checked(prefix.len())?;
    start.eq_ignore_ascii_case(prefix).then_some(rest)
}

/// Looks up a unit by name, without prefixes.
fn known(name: &str, depth: u32) -> Option<Unit> {
    if name == "pi" || name == "π" {
        return Some(Unit::number(Exact::PI));
    }
    let row =
        UNITS.iter().find(|row| row.symbols.contains(&name) || row.names.iter().any(|full| is_form_of(name, full)))?;
    if let Some(base) = row.definition.strip_prefix('#') {
        let base: usize = base.parse().ok()?;
        return (base < BASES).then(|| Unit::base(base));
    }
    match row.definition.split_once(" @ ") {
        None => nested(row.definition, depth),
        Some((step, zero)) => {
            let step = nested(step, depth)?;
            let zero = nested(zero, depth)?.scale.times(step.scale)?;
            Some(Unit { zero, ..step })
        }
    }
}

/// Returns whether `name` equals `full` or its plural, ignoring case.
fn is_form_of(name: &str, full: &str) -> bool {
    let is = |form: &str| name.eq_ignore_ascii_case(form);
    is(full)
        || without_prefix(name, full)
            .is_some_and(|end| ["s", "es"].iter().any(|plural| end.eq_ignore_ascii_case(plural)))
        || full.strip_suffix('y').is_some_and(|stem| is(&format!("{stem}ies")))
}
