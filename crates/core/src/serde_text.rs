//! Types that serde stores as the text that users write.

/// Implements the conversions of `#[serde(try_from = "String", into = "String")]` for types that `FromStr` reads and
/// `Display` writes.
///
/// # Example
/// ```
/// #[derive(Clone, serde::Serialize, serde::Deserialize)]
/// #[serde(try_from = "String", into = "String")]
/// struct Port(u16);
///
/// impl std::str::FromStr for Port {
///     type Err = std::num::ParseIntError;
///
///     fn from_str(text: &str) -> Result<Self, Self::Err> {
///         text.parse().map(Self)
///     }
/// }
///
/// impl std::fmt::Display for Port {
///     fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
///         self.0.fmt(f)
///     }
/// }
///
/// raddle_core::serde_as_text!(Port);
///
/// let port = Port::try_from("8080".to_owned())?;
/// assert_eq!(String::from(port), "8080");
/// # Ok::<(), std::num::ParseIntError>(())
/// ```
#[macro_export]
macro_rules! serde_as_text {
    ($type:ty) => {
        impl ::std::convert::TryFrom<::std::string::String> for $type {
            type Error = <$type as ::std::str::FromStr>::Err;

            fn try_from(text: ::std::string::String) -> ::std::result::Result<Self, Self::Error> {
                text.parse()
            }
        }

        impl ::std::convert::From<$type> for ::std::string::String {
            fn from(value: $type) -> Self {
                value.to_string()
            }
        }
    };
}
