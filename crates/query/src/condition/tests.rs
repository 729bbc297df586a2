//! Tests of conditions: verdicts on statistics are compared with evaluation on values.

use super::*;
use crate::statistics::OrderedType;
use crate::strings::canonical_of;
use proptest::prelude::*;

fn of_value(number: NumberType, operator: Operator, value: &Literal) -> Test {
    Test::new(&ColumnKind::Number(number), operator, value).unwrap()
}

/// Generates small numbers, which are often equal, and extremes.
fn floats() -> impl Strategy<Value = f64> {
    let special = prop::sample::select(vec![0.0, -0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, 1e-320]);
    prop_oneof![4 => (-3_i32..4).prop_map(|value| f64::from(value) / 2.0), 1 => special, 1 => any::<f64>()]
}

fn integers() -> impl Strategy<Value = i64> {
    prop_oneof![4 => -3_i64..4, 1 => prop::sample::select(vec![i64::MIN, i64::MAX, 1 << 53, (1 << 53) + 1]), 1 => any::<i64>()]
}

/// Generates strings that often share their first bytes, with zeros at any place.
fn text() -> impl Strategy<Value = Vec<u8>> {
    let start = prop::sample::select(vec![0_usize, 2, 15, 16, 18]);
    (start, prop::collection::vec(prop::sample::select(vec![0, b'a', b'b', 0xff]), 0..3)).prop_map(|(start, end)| {
        let mut text = vec![b'a'; start];
        text.extend(end);
        text
    })
}

/// Returns strings as they are stored: padded to a length, and with variable length.
fn stored(strings: &[Vec<u8>], len_bytes: usize) -> [(StringForm, Vec<u8>); 2] {
    let mut padded = Vec::new();
    for text in strings {
        let end = padded.len() + len_bytes;
        padded.extend(text.iter().take(len_bytes));
        padded.resize(end, 0);
    }
    // Variable-length strings have no zeros.
    let cut = strings.iter().map(|text| text.split(|byte| *byte == 0).next().unwrap());
    [(StringForm::Padded { len_bytes }, padded), (StringForm::Canonical, canonical_of(cut))]
}

/// Checks that a list finds the values that one of the tests of column 0 finds, and judges them correctly.
fn check_list(tests: Vec<Condition>, bytes: &[u8], of: OrderedType) -> Result<(), TestCaseError> {
    let known = BlockStatistics::of(of, bytes);
    let listed = Condition::any_of(tests.clone(), 1);
    let each = Condition::Or(tests);
    let rows = match of {
        OrderedType::Number(number) => bytes.len() / number.len_bytes(),
        OrderedType::String(form) => form.strings(bytes).len(),
    };
    let holds = each.evaluate(rows, &[bytes]);
    prop_assert_eq!(&listed.evaluate(rows, &[bytes]), &holds, "{:?}", listed);
    for limits in [known.clone(), BlockStatistics::of_limits(known.limits)] {
        match listed.judge(&|_| Some(&limits)) {
            Matches::None => prop_assert!(!holds.contains(&true), "{listed:?} {holds:?}"),
            Matches::All => prop_assert!(!holds.contains(&false), "{listed:?} {holds:?}"),
            Matches::Some => {}
        }
    }
    Ok(())
}

fn literal() -> impl Strategy<Value = Literal> {
    prop_oneof![
        integers().prop_map(|value| Literal::Integer(i128::from(value))),
        (-2_i128..3).prop_map(|beyond| Literal::Integer(i128::from(u64::MAX) + beyond)),
        floats().prop_map(Literal::Float),
    ]
}

/// Compares exactly, whatever the types.
fn exactly(operator: Operator, left: i128, right: &Literal) -> bool {
    match right {
        Literal::Integer(right) => operator.holds(&left, right),
        Literal::Float(right) if right.is_nan() => operator == Operator::NotEqual,
        Literal::Float(right) if right.abs() > 1e30 => operator.holds(&0.0, right),
        // An integer equals the float if it equals its floor and nothing is left; otherwise the rest decides.
        Literal::Float(right) => {
            let (floor, has_rest) = (right.floor() as i128, right.fract() != 0.0);
            operator.holds(&(left, false), &(floor, has_rest))
        }
        Literal::String(_) | Literal::Column(_) => false,
    }
}

fn condition() -> impl Strategy<Value = (Vec<Test>, Condition)> {
    let test = (any::<bool>(), prop::sample::select(Operator::ALL.to_vec()), literal());
    prop::collection::vec(test, 1..5).prop_flat_map(|drawn| {
        let number = |is_float: bool| match is_float {
            true => NumberType::Float { len_bytes: 8, is_big_endian: false },
            false => NumberType::int64(),
        };
        let tests: Vec<(usize, Test)> = drawn
            .iter()
            .map(|(is_float, operator, value)| (usize::from(*is_float), of_value(number(*is_float), *operator, value)))
            .collect();
        let leaf = prop::sample::select(tests.clone()).prop_map(|(column, test)| Condition::Test(column, test));
        let tree = leaf.prop_recursive(3, 12, 3, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Condition::And),
                prop::collection::vec(inner.clone(), 0..3).prop_map(Condition::Or),
                inner.prop_map(|one| Condition::Not(Box::new(one))),
            ]
        });
        (Just(tests.into_iter().map(|(_, test)| test).collect()), tree)
    })
}

proptest! {
    #[test]
    fn integers_are_compared_exactly(values in prop::collection::vec(integers(), 0..8), at in 0_usize..6, value in literal()) {
        let test = of_value(NumberType::int64(), Operator::ALL[at], &value);
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let expected: Vec<bool> = values.iter().map(|&left| exactly(Operator::ALL[at], i128::from(left), &value)).collect();
        prop_assert_eq!(test.evaluate(&bytes), expected);
    }

    #[test]
    fn a_search_among_ranges_finds_what_comparing_with_each_finds(
        values in prop::collection::vec(integers(), 0..8),
        parts in prop::collection::vec((prop::sample::select(Operator::ALL.to_vec()), literal()), 0..6),
        is_byte in any::<bool>(),
    ) {
        let byte = NumberType::Integer { len_bytes: 1, signed: true, is_big_endian: false };
        let (number, bytes): (_, Vec<u8>) = match is_byte {
            true => (byte, values.iter().map(|&value| value as u8).collect()),
            false => (NumberType::int64(), values.iter().flat_map(|value| value.to_le_bytes()).collect()),
        };
        let tests = parts.iter().map(|(operator, value)| Condition::Test(0, of_value(number, *operator, value)));
        check_list(tests.collect(), &bytes, OrderedType::Number(number))?;
    }

    #[test]
    fn small_types_have_limits(values in prop::collection::vec(any::<u8>(), 0..8), at in 0_usize..6, value in -300_i128..600) {
        let number = NumberType::Integer { len_bytes: 1, signed: false, is_big_endian: false };
        let test = of_value(number, Operator::ALL[at], &Literal::Integer(value));
        let expected: Vec<bool> = values.iter().map(|&left| Operator::ALL[at].holds(&i128::from(left), &value)).collect();
        prop_assert_eq!(test.evaluate(&values), expected);
    }

    #[test]
    fn floats_are_compared_as_ieee_says(values in prop::collection::vec(floats(), 0..8), at in 0_usize..6, value in floats()) {
        let single = NumberType::Float { len_bytes: 4, is_big_endian: true };
        let double = NumberType::Float { len_bytes: 8, is_big_endian: false };
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let expected: Vec<bool> = values.iter().map(|left| Operator::ALL[at].holds(left, &value)).collect();
        prop_assert_eq!(of_value(double, Operator::ALL[at], &Literal::Float(value)).evaluate(&bytes), expected);
        let bytes: Vec<u8> = values.iter().flat_map(|&value| (value as f32).to_be_bytes()).collect();
        let expected: Vec<bool> = values.iter().map(|&left| Operator::ALL[at].holds(&(left as f32), &(value as f32))).collect();
        prop_assert_eq!(of_value(single, Operator::ALL[at], &Literal::Float(value)).evaluate(&bytes), expected);
    }

    #[test]
    fn strings_are_judged_as_their_values(
        strings in prop::collection::vec(text(), 0..4),
        value in text(),
        len_bytes in prop::sample::select(vec![3_usize, 16, 17, 20]),
        at in 0_usize..6,
    ) {
        for (form, bytes) in stored(&strings, len_bytes) {
            let test = Test::Strings { form, operator: Operator::ALL[at], value: value.clone() };
            let holds = test.evaluate(&bytes);
            let expected = form.strings(&bytes).into_iter().map(|text| Operator::ALL[at].holds(text, value.as_slice()));
            prop_assert_eq!(&holds, &expected.collect::<Vec<_>>());
            match test.judge(BlockStatistics::of(OrderedType::String(form), &bytes).limits) {
                Matches::None => prop_assert!(!holds.contains(&true), "{test:?} {holds:?}"),
                Matches::All => prop_assert!(!holds.contains(&false), "{test:?} {holds:?}"),
                Matches::Some => {}
            }
        }
    }

    #[test]
    fn a_search_in_a_list_of_floats_finds_what_comparing_with_each_finds(
        values in prop::collection::vec(floats(), 0..8),
        listed in prop::collection::vec(floats(), 1..6),
        is_single in any::<bool>(),
    ) {
        let (number, bytes): (_, Vec<u8>) = match is_single {
            true => {
                let bytes = values.iter().flat_map(|value| (*value as f32).to_be_bytes()).collect();
                (NumberType::Float { len_bytes: 4, is_big_endian: true }, bytes)
            }
            false => {
                let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
                (NumberType::Float { len_bytes: 8, is_big_endian: false }, bytes)
            }
        };
        let equal = |value: &f64| Condition::Test(0, of_value(number, Operator::Equal, &Literal::Float(*value)));
        check_list(listed.iter().map(equal).collect(), &bytes, OrderedType::Number(number))?;
    }

    #[test]
    fn a_search_in_a_list_of_strings_finds_what_comparing_with_each_finds(
        strings in prop::collection::vec(text(), 0..4),
        listed in prop::collection::vec(text(), 1..6),
        len_bytes in prop::sample::select(vec![3_usize, 16, 17, 20]),
    ) {
        for (form, bytes) in stored(&strings, len_bytes) {
            let equal = |value: &Vec<u8>| {
                Condition::Test(0, Test::Strings { form, operator: Operator::Equal, value: value.clone() })
            };
            check_list(listed.iter().map(equal).collect(), &bytes, OrderedType::String(form))?;
        }
    }

    #[test]
    fn a_block_is_judged_as_its_values(
        rows in prop::collection::vec((integers(), floats()), 0..6),
        (_, condition) in condition(),
    ) {
        let whole: Vec<u8> = rows.iter().flat_map(|row| row.0.to_le_bytes()).collect();
        let real: Vec<u8> = rows.iter().flat_map(|row| row.1.to_le_bytes()).collect();
        let double = NumberType::Float { len_bytes: 8, is_big_endian: false };
        let known = [(NumberType::int64(), &whole), (double, &real)]
            .map(|(number, bytes)| BlockStatistics::of(OrderedType::Number(number), bytes));
        let limits = known.clone().map(|one| BlockStatistics::of_limits(one.limits));
        let holds = condition.evaluate(rows.len(), &[&whole, &real]);
        let unknown = condition.judge(&|column| (column == 0).then_some(&known[0]));
        let by_limits = condition.judge(&|column| Some(&limits[column]));
        let by_values = condition.judge(&|column| Some(&known[column]));
        // Of fewer than 16 rows of one column, the values decide everything.
        if condition.only_column().is_some() && !rows.is_empty() {
            let expected = Matches::of(!holds.contains(&false), !holds.contains(&true));
            prop_assert_eq!(by_values, expected);
        }
        for verdict in [by_values, by_limits, unknown] {
            match verdict {
                Matches::None => prop_assert!(!holds.contains(&true), "{condition:?} {holds:?}"),
                Matches::All => prop_assert!(!holds.contains(&false), "{condition:?} {holds:?}"),
                Matches::Some => {}
            }
        }
    }
}

#[test]
fn long_lists_of_integers_are_searched() {
    let list = |count: i128| {
        let equal = |value| of_value(NumberType::int64(), Operator::Equal, &Literal::Integer(3 * value));
        let parts = (0..count).map(|value| Condition::Test(0, equal(value)));
        Condition::any_of(parts.collect(), MIN_LISTED)
    };
    let is_one_test = |condition: &Condition| matches!(condition, Condition::Or(any) if any.len() == 1);
    assert_eq!([15, 16].map(|values| is_one_test(&list(values))), [false, true]);
    let judge = |min, max| {
        let limits = BlockStatistics::of_limits(Limits::Integers { min, max });
        list(16).judge(&|_| Some(&limits))
    };
    assert_eq!(
        [judge(4, 5), judge(4, 6), judge(6, 6), judge(46, 50)],
        [Matches::None, Matches::Some, Matches::All, Matches::None]
    );
}

#[test]
fn limits_decide_where_they_can() {
    let double = NumberType::Float { len_bytes: 8, is_big_endian: false };
    let verdict = |operator, value, min, max, nans| {
        of_value(double, operator, &Literal::Float(value)).judge(Limits::Floats { min, max, nans })
    };
    assert_eq!(verdict(Operator::Greater, 2.0, 0.0, 2.0, 0), Matches::None);
    assert_eq!(verdict(Operator::Greater, 2.0, 2.5, 3.0, 0), Matches::All);
    assert_eq!(verdict(Operator::Greater, 2.0, 2.5, 3.0, 1), Matches::Some);
    assert_eq!(verdict(Operator::NotEqual, 2.0, 2.5, 3.0, 1), Matches::All);
    assert_eq!(verdict(Operator::Equal, f64::NAN, 0.0, 1.0, 1), Matches::None);
    assert_eq!(verdict(Operator::NotEqual, 1.0, f64::INFINITY, f64::NEG_INFINITY, 3), Matches::All);
    // Infinite limits of a block without numbers are not values.
    assert_eq!(verdict(Operator::LessOrEqual, f64::INFINITY, f64::INFINITY, f64::NEG_INFINITY, 3), Matches::None);
    assert_eq!(verdict(Operator::Equal, 0.0, -0.0, -0.0, 0), Matches::All);
}

#[test]
fn strings_are_compared_without_padding() {
    let padded = StringForm::Padded { len_bytes: 4 };
    let kind = ColumnKind::String(padded);
    let test = |operator, value: &str| Test::new(&kind, operator, &Literal::String(value.to_owned())).unwrap();
    assert_eq!(test(Operator::Equal, "ab").evaluate(b"ab\0\0abc\0"), [true, false]);
    assert_eq!(test(Operator::Less, "abc").evaluate(b"ab\0\0abc\0b\0\0\0"), [true, false, false]);
    let refused = Test::new(&kind, Operator::Equal, &Literal::Integer(3)).unwrap_err();
    assert!(refused.contains("holds strings"), "{refused}");

    let judge = |operator, value: &str, strings: &[u8]| {
        test(operator, value).judge(BlockStatistics::of(OrderedType::String(padded), strings).limits)
    };
    assert_eq!(judge(Operator::Equal, "far", b"far\0far\0"), Matches::All);
    assert_eq!(judge(Operator::Equal, "far", b"far\0near"), Matches::Some);
    assert_eq!(judge(Operator::Equal, "side", b"far\0near"), Matches::None);
    assert_eq!(judge(Operator::Less, "near", b"far\0near"), Matches::Some);
    assert_eq!(judge(Operator::LessOrEqual, "near", b"far\0near"), Matches::All);
    assert_eq!(judge(Operator::Greater, "near", b"far\0near"), Matches::None);
}

#[test]
fn distinct_values_decide_between_the_limits() {
    let double = NumberType::Float { len_bytes: 8, is_big_endian: false };
    let bytes: Vec<u8> = [1.0, 5.0, 1.0, f64::NAN].iter().flat_map(|value: &f64| value.to_le_bytes()).collect();
    let known = BlockStatistics::of(OrderedType::Number(double), &bytes);
    let test = |operator, value| Condition::Test(0, of_value(double, operator, &Literal::Float(value)));
    let limits = BlockStatistics::of_limits(known.limits);
    let judge = |condition: Condition| {
        let by_limits = condition.judge(&|_| Some(&limits));
        (by_limits, condition.judge(&|_| Some(&known)))
    };
    assert_eq!(judge(test(Operator::Equal, 3.0)), (Matches::Some, Matches::None));
    assert_eq!(judge(test(Operator::NotEqual, 3.0)), (Matches::Some, Matches::All));
    assert_eq!(judge(test(Operator::Equal, 5.0)), (Matches::Some, Matches::Some));
    // No row lies between 2 and 4, although some are above 2 and some below 4.
    let between = Condition::And(vec![test(Operator::Greater, 2.0), test(Operator::Less, 4.0)]);
    assert_eq!(judge(between.clone()), (Matches::Some, Matches::None));
    assert_eq!(judge(Condition::Not(Box::new(between))), (Matches::Some, Matches::All));
    // Together, both parts hold for every number, but not for NaN.
    let any = Condition::Or(vec![test(Operator::Equal, 1.0), test(Operator::Equal, 5.0)]);
    assert_eq!(judge(any), (Matches::Some, Matches::Some));
    // Each part has a column of its own.
    let other = Condition::Test(1, of_value(double, Operator::Equal, &Literal::Float(0.0)));
    let both = Condition::And(vec![other, test(Operator::Equal, 3.0)]);
    assert_eq!(both.judge(&|column| (column == 0).then_some(&known)), Matches::None);
}

#[test]
fn prefixes_of_longer_strings_decide_where_they_can() {
    let judge = |operator, value: &str, strings: &[&[u8]]| {
        let test = Test::new(&ColumnKind::String(StringForm::Canonical), operator, &Literal::String(value.to_owned()));
        test.unwrap().judge(BlockStatistics::of_strings(strings).limits)
    };
    let (long, longer) = (b"0123456789abcdef".as_slice(), b"0123456789abcdefg".as_slice());
    assert_eq!(judge(Operator::Equal, "far", &[b"far", b"far"]), Matches::All);
    assert_eq!(judge(Operator::Equal, "far", &[b"near", b"side"]), Matches::None);
    assert_eq!(judge(Operator::Equal, "0123456789abcdef", &[long, longer]), Matches::Some);
    assert_eq!(judge(Operator::Equal, "0123456789abcde", &[long, longer]), Matches::None);
    assert_eq!(judge(Operator::LessOrEqual, "0123456789abcdef", &[long, longer]), Matches::Some);
    assert_eq!(judge(Operator::Greater, "", &[b"", b"a"]), Matches::Some);
    assert_eq!(judge(Operator::GreaterOrEqual, "", &[b"", b"a"]), Matches::All);
}

#[test]
fn values_of_enumerations_have_names() {
    let symbols = vec![(b"red".to_vec(), 3), (b"blue".to_vec(), -1)];
    let kind = ColumnKind::Enumeration {
        base: NumberType::Integer { len_bytes: 1, signed: true, is_big_endian: false },
        symbols,
    };
    let test = Test::new(&kind, Operator::Equal, &Literal::String("blue".to_owned())).unwrap();
    assert_eq!(test.evaluate(&[3, 255]), [false, true]);
    let refused = Test::new(&kind, Operator::Equal, &Literal::String("green".to_owned())).unwrap_err();
    assert_eq!(refused, "has no value \"green\"; its values are red, blue");
}
