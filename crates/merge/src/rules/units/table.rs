//! Known units: SI units, units accepted for use with the SI, and others that are common in the earth sciences, physics
//! and biology.
//!
//! Rare customary units (barrels, hundredweights) and logarithmic ones are not included. Source: the database of
//! UDUNITS-2, version 2.2.28. Invariant: a definition refers only to units of other rows, or to a base unit by its
//! number (`#0`).

/// Unit of the table.
pub struct UnitRow {
    /// Full names, which are case-insensitive and have regular plurals.
    pub names: &'static [&'static str],
    /// Symbols and irregular plurals.
    pub symbols: &'static [&'static str],
    /// Definition; for a unit with an offset, `STEP @ ZERO` in steps.
    pub definition: &'static str,
}

const fn row(names: &'static [&'static str], symbols: &'static [&'static str], definition: &'static str) -> UnitRow {
    UnitRow { names, symbols, definition }
}

/// Name, symbols and power of ten of each prefix.
pub const PREFIXES: [(&str, &[&str], i32); 20] = [
    ("yotta", &["Y"], 24),
    ("zetta", &["Z"], 21),
    ("exa", &["E"], 18),
    ("peta", &["P"], 15),
    ("tera", &["T"], 12),
    ("giga", &["G"], 9),
    ("mega", &["M"], 6),
    ("kilo", &["k"], 3),
    ("hecto", &["h"], 2),
    ("deka", &["da"], 1),
    ("deci", &["d"], -1),
    ("centi", &["c"], -2),
    ("milli", &["m"], -3),
    ("micro", &["\u{b5}", "\u{3bc}", "u"], -6),
    ("nano", &["n"], -9),
    ("pico", &["p"], -12),
    ("femto", &["f"], -15),
    ("atto", &["a"], -18),
    ("zepto", &["z"], -21),
    ("yocto", &["y"], -24),
];

/// All units.
pub const UNITS: &[UnitRow] = &[
    // Base units.
    row(&["meter", "metre"], &["m"], "#0"),
    row(&["kilogram"], &["kg"], "#1"),
    row(&["second", "sec"], &["s"], "#2"),
    row(&["ampere", "amp"], &["A"], "#3"),
    row(
        &["kelvin", "degree_kelvin"],
        &["K", "degree_K", "degreeK", "deg_K", "degK", "degrees_K", "degreesK", "degrees_kelvin", "°K"],
        "#4",
    ),
    row(&["mole"], &["mol"], "#5"),
    row(&["candela"], &["cd"], "#6"),
    // Derived units with special names.
    row(&["radian"], &["rad"], "1"),
    row(&["steradian"], &["sr"], "1"),
    row(&["hertz"], &["Hz"], "1/s"),
    row(&["gram"], &["g"], "1e-3 kg"),
    row(&["newton"], &["N"], "m kg/s^2"),
    row(&["pascal"], &["Pa"], "N/m^2"),
    row(&["joule"], &["J"], "N m"),
    row(&["watt"], &["W"], "J/s"),
    row(&["coulomb"], &["C"], "s A"),
    row(&["volt"], &["V"], "W/A"),
    row(&["farad"], &["F"], "C/V"),
    row(&["ohm"], &["\u{3a9}", "\u{2126}"], "V/A"),
    row(&["siemens"], &["S"], "A/V"),
    row(&["weber"], &["Wb"], "V s"),
    row(&["tesla"], &["T"], "Wb/m^2"),
    row(&["henry"], &["H"], "Wb/A"),
    row(&["lumen"], &["lm"], "cd sr"),
    row(&["lux"], &["lx"], "lm/m^2"),
    row(&["katal"], &["kat"], "mol/s"),
    row(&["becquerel"], &["Bq"], "1/s"),
    row(&["gray"], &["Gy"], "J/kg"),
    row(&["sievert"], &["Sv"], "J/kg"),
    row(
        &["degree_celsius", "celsius"],
        &[
            "°C",
            "\u{2103}",
            "degree_C",
            "degreeC",
            "deg_C",
            "degC",
            "degrees_C",
            "degreesC",
            "degs_C",
            "degrees_celsius",
            "degrees_Celsius",
        ],
        "K @ 273.15",
    ),
    row(&["degree_rankine"], &["°R", "degree_R", "degreeR", "deg_R", "degR", "degrees_R", "degreesR"], "K/1.8"),
    row(
        &["fahrenheit", "degree_fahrenheit"],
        &["°F", "\u{2109}", "degree_F", "degreeF", "deg_F", "degF", "degrees_F", "degreesF", "degrees_fahrenheit"],
        "degR @ 459.67",
    ),
    // Times.
    row(&["minute"], &["min"], "60 s"),
    row(&["hour"], &["h", "hr"], "60 min"),
    row(&["day"], &["d"], "24 h"),
    row(&["week"], &[], "7 day"),
    row(&["common_year"], &[], "365 day"),
    row(&["julian_year"], &[], "365.25 day"),
    row(&["year"], &["yr"], "3.15569259747e7 s"),
    row(&["month"], &[], "year/12"),
    // Angles.
    row(
        &["degree", "arc_degree", "angular_degree", "arcdeg"],
        &[
            "°",
            "degree_north",
            "degree_N",
            "degreeN",
            "degree_east",
            "degree_E",
            "degreeE",
            "degree_true",
            "degree_T",
            "degreeT",
            "degrees_north",
            "degrees_N",
            "degreesN",
            "degrees_east",
            "degrees_E",
            "degreesE",
            "degrees_true",
            "degrees_T",
            "degreesT",
        ],
        "(pi/180) rad",
    ),
    row(&["arc_minute", "angular_minute", "arcminute", "arcmin"], &["'", "\u{2032}"], "degree/60"),
    row(&["arc_second", "angular_second", "arcsecond", "arcsec"], &["\"", "\u{2033}"], "arcmin/60"),
    row(&["circle", "cycle", "turn", "revolution", "rotation"], &[], "2 pi rad"),
    row(&[], &["rpm"], "rotation/min"),
    // Numbers.
    row(&[], &["percent", "%"], "0.01"),
    row(&[], &["ppv"], "1"),
    row(&[], &["ppm", "ppmv"], "1e-6"),
    row(&[], &["ppb", "ppbv"], "1e-9"),
    row(&[], &["ppt", "pptv"], "1e-12"),
    row(&[], &["ppq", "ppqv"], "1e-15"),
    row(&["count", "bit"], &[], "1"),
    row(&["byte", "octet"], &[], "8"),
    row(&["molecule", "molec"], &[], "mol/6.02214179e23"),
    // Lengths, areas, volumes.
    row(&["micron"], &[], "1e-6 m"),
    row(&["angstrom"], &["\u{c5}", "\u{212b}"], "1e-10 m"),
    row(&["fermi"], &[], "1e-15 m"),
    row(&["inch", "international_inch"], &["in"], "2.54 cm"),
    row(&["foot", "international_foot"], &["ft", "feet", "international_feet"], "12 in"),
    row(&["yard", "international_yard"], &["yd"], "3 ft"),
    row(&["mile", "international_mile"], &["mi"], "5280 ft"),
    row(&["nautical_mile", "nmile"], &[], "1852 m"),
    row(&["astronomical_unit"], &["au"], "1.49597870700e11 m"),
    row(&["light_year"], &[], "9.46073e15 m"),
    row(&["parsec"], &[], "3.085678e16 m"),
    row(&["are"], &["a"], "dam^2"),
    row(&["hectare"], &[], "100 are"),
    row(&["barn"], &["b"], "100 fm^2"),
    row(&["liter", "litre"], &["L", "l"], "dm^3"),
    row(&[], &["cc"], "cm^3"),
    row(&["sverdrup"], &[], "1e6 m^3/s"),
    // Speeds.
    row(&["knot", "international_knot"], &["kt", "kts"], "nautical_mile/h"),
    // Masses.
    row(&["tonne", "metric_ton"], &["t"], "1000 kg"),
    row(&["pound", "avoirdupois_pound"], &["lb"], "4.5359237e-1 kg"),
    row(&[], &["u", "amu", "atomic_mass_unit", "unified_atomic_mass_unit", "atomicmassunit"], "1.6605402e-27 kg"),
    // Forces, pressures, energies.
    row(&["gravity", "standard_free_fall", "force"], &[], "9.806650 m/s^2"),
    row(&["geopotential", "dynamic"], &["gp"], "gravity"),
    row(&["dyne"], &[], "1e-5 N"),
    row(&["bar"], &[], "1000 hPa"),
    row(&["atmosphere", "standard_atmosphere"], &["atm"], "1.01325e5 Pa"),
    row(
        &["torr"],
        &["mmHg", "mm_Hg", "mmhg", "mm_hg", "millimeter_Hg", "millimeters_Hg"],
        "mm gravity 13595.10 kg/m^3",
    ),
    row(&["inch_Hg"], &["inHg", "in_Hg", "inches_Hg"], "inch gravity 13595.10 kg/m^3"),
    row(&[], &["psi"], "pound gravity/in^2"),
    row(&["poise"], &[], "1e-1 Pa s"),
    row(&["stokes"], &["St"], "1e-4 m^2/s"),
    row(&["erg"], &[], "1e-7 J"),
    row(&["electronvolt", "electron_volt"], &["eV"], "1.60217733e-19 J"),
    row(&["calorie", "IT_calorie"], &["cal"], "4.1868 J"),
    row(&["thermochemical_calorie"], &[], "4.184 J"),
    row(&["langley"], &[], "4.184000e4 J/m^2"),
    row(&["watthour"], &[], "W h"),
    row(&["horsepower"], &["hp"], "7.456999e2 W"),
    // Others.
    row(&["gal"], &[], "cm/s^2"),
    row(&["gauss"], &[], "1e-4 T"),
    row(&["curie"], &["Ci"], "3.7e10 Bq"),
    row(&["rem"], &[], "cSv"),
    row(&["einstein"], &[], "mol"),
    row(&["dobson"], &["DU"], "446.2 umol/m^2"),
    row(&["potential_vorticity_unit"], &["PVU"], "1e-6 m^2 K/(s kg)"),
];
