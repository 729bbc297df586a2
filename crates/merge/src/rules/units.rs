//! Units that have a linear map to others: lengths, pressures, temperatures, masses, speeds and ratios as data of the
//! climate sciences have them.
//!
//! Not for times, which count from a reference ([`super::time_units`]). Source of the factors: UDUNITS-2, all of them exact
//! by definition. Invariant: only units of one quantity have a map.

/// Name, quantity, and how many of the quantity's base unit one is, and where its zero lies.
const UNITS: [(&str, Quantity, f64, f64); 36] = [
    ("K", Quantity::Temperature, 1.0, 0.0),
    ("kelvin", Quantity::Temperature, 1.0, 0.0),
    ("degC", Quantity::Temperature, 1.0, 273.15),
    ("degree_C", Quantity::Temperature, 1.0, 273.15),
    ("degrees_C", Quantity::Temperature, 1.0, 273.15),
    ("celsius", Quantity::Temperature, 1.0, 273.15),
    ("Celsius", Quantity::Temperature, 1.0, 273.15),
    ("m", Quantity::Length, 1.0, 0.0),
    ("metre", Quantity::Length, 1.0, 0.0),
    ("meter", Quantity::Length, 1.0, 0.0),
    ("meters", Quantity::Length, 1.0, 0.0),
    ("km", Quantity::Length, 1000.0, 0.0),
    ("dm", Quantity::Length, 0.1, 0.0),
    ("cm", Quantity::Length, 0.01, 0.0),
    ("mm", Quantity::Length, 0.001, 0.0),
    ("Pa", Quantity::Pressure, 1.0, 0.0),
    ("hPa", Quantity::Pressure, 100.0, 0.0),
    ("mbar", Quantity::Pressure, 100.0, 0.0),
    ("millibar", Quantity::Pressure, 100.0, 0.0),
    ("kPa", Quantity::Pressure, 1000.0, 0.0),
    ("bar", Quantity::Pressure, 100_000.0, 0.0),
    ("atm", Quantity::Pressure, 101_325.0, 0.0),
    ("kg", Quantity::Mass, 1.0, 0.0),
    ("g", Quantity::Mass, 0.001, 0.0),
    ("mg", Quantity::Mass, 1e-6, 0.0),
    ("m s-1", Quantity::Speed, 1.0, 0.0),
    ("m/s", Quantity::Speed, 1.0, 0.0),
    ("cm s-1", Quantity::Speed, 0.01, 0.0),
    ("km s-1", Quantity::Speed, 1000.0, 0.0),
    ("1", Quantity::Ratio, 1.0, 0.0),
    ("%", Quantity::Ratio, 0.01, 0.0),
    ("percent", Quantity::Ratio, 0.01, 0.0),
    ("kg kg-1", Quantity::Ratio, 1.0, 0.0),
    ("g kg-1", Quantity::Ratio, 0.001, 0.0),
    ("ppm", Quantity::Ratio, 1e-6, 0.0),
    ("ppb", Quantity::Ratio, 1e-9, 0.0),
];

/// What a unit measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quantity {
    Temperature,
    Length,
    Pressure,
    Mass,
    Speed,
    Ratio,
}

/// Slope and shift by which numbers of `from` become numbers of `to`; `None` where none is known.
pub fn linear_map(from: &str, to: &str) -> Option<(f64, f64)> {
    let find = |name: &str| UNITS.iter().find(|(known, ..)| *known == name.trim());
    let (_, quantity, from_factor, from_zero) = find(from)?;
    let (_, other, to_factor, to_zero) = find(to)?;
    (quantity == other).then(|| (from_factor / to_factor, (from_zero - to_zero) / to_factor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_are_those_of_the_units() {
        assert_eq!(linear_map("degC", "K"), Some((1.0, 273.15)));
        assert_eq!(linear_map("K", "degC"), Some((1.0, -273.15)));
        assert_eq!(linear_map("hPa", "Pa"), Some((100.0, 0.0)));
        assert_eq!(linear_map("g kg-1", "%").map(|(slope, _)| (slope * 1e9).round()), Some(1e8));
        assert_eq!(linear_map("m", "Pa"), None);
        assert_eq!(linear_map("furlong", "m"), None);
    }
}
