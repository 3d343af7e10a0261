//! Wire types that take what hosts send where the API promises something else.
//!
//! A value of an unexpected JSON type reads as absent instead of failing the whole chunk: hosts send
//! `null`, `""`, numbers as text and objects for strings in fields that do not matter. Only text
//! that is not JSON fails. Strings are borrowed from the payload where they hold no escapes.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// A string; empty when there is none.
#[derive(Clone, Debug, Default)]
pub(crate) struct Text<'a>(pub(crate) Cow<'a, str>);

/// A count of something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count(pub(crate) Option<u64>);

/// An object, if it is one.
#[derive(Clone, Debug)]
pub(crate) struct Maybe<T>(pub(crate) Option<T>);

/// An array's items; none when it is no array.
#[derive(Clone, Debug)]
pub(crate) struct List<T>(pub(crate) Vec<T>);

/// Whether there is anything but `null`, `false`, `""`, `{}` or `[]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Present(pub(crate) bool);

impl Text<'_> {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Count {
    pub(crate) fn or(self, other: Self) -> Self {
        Self(self.0.or(other.0))
    }

    pub(crate) fn or_zero(self) -> u64 {
        self.0.unwrap_or_default()
    }
}

impl<T> Default for Maybe<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> Default for List<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

/// The visitor methods for JSON types that read as absent.
macro_rules! absent {
    ($($kind:ident)*) => { $(absent!(@ $kind);)* };
    (@ bool) => { fn visit_bool<E: Error>(self, _: bool) -> Result<Self::Value, E> { Ok(Self::Value::default()) } };
    (@ number) => {
        fn visit_u64<E: Error>(self, _: u64) -> Result<Self::Value, E> { Ok(Self::Value::default()) }
        fn visit_i64<E: Error>(self, _: i64) -> Result<Self::Value, E> { Ok(Self::Value::default()) }
        fn visit_f64<E: Error>(self, _: f64) -> Result<Self::Value, E> { Ok(Self::Value::default()) }
    };
    (@ string) => { fn visit_str<E: Error>(self, _: &str) -> Result<Self::Value, E> { Ok(Self::Value::default()) } };
    (@ null) => { fn visit_unit<E: Error>(self) -> Result<Self::Value, E> { Ok(Self::Value::default()) } };
    (@ array) => {
        fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
            while items.next_element::<IgnoredAny>()?.is_some() {}
            Ok(Self::Value::default())
        }
    };
    (@ object) => {
        fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
            while entries.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            Ok(Self::Value::default())
        }
    };
}
pub(crate) use absent;

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Expected<'a>(PhantomData<&'a ()>);
        impl<'de: 'a, 'a> Visitor<'de> for Expected<'a> {
            type Value = Text<'a>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Borrowed(text)))
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
            absent!(bool number null array object);
        }
        deserializer.deserialize_any(Expected(PhantomData))
    }
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Expected;
        impl<'de> Visitor<'de> for Expected {
            type Value = Count;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a count")
            }
            fn visit_u64<E: Error>(self, number: u64) -> Result<Count, E> {
                Ok(Count(Some(number)))
            }
            fn visit_i64<E: Error>(self, number: i64) -> Result<Count, E> {
                Ok(Count(Some(u64::try_from(number).unwrap_or_default())))
            }
            fn visit_f64<E: Error>(self, number: f64) -> Result<Count, E> {
                // A float reads through its decimal text, which needs no lossy cast.
                Ok(Count(format!("{:.0}", number.max(0.0)).parse().ok()))
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Count, E> {
                Ok(Count(text.trim().parse().ok()))
            }
            absent!(bool null array object);
        }
        deserializer.deserialize_any(Expected)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Maybe<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Expected<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Expected<T> {
            type Value = Maybe<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<Self::Value, A::Error> {
                T::deserialize(MapAccessDeserializer::new(entries)).map(Some).map(Maybe)
            }
            absent!(bool number string null array);
        }
        deserializer.deserialize_any(Expected(PhantomData))
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Expected<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Expected<T> {
            type Value = List<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an array")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
                // Most lists of a stream have one item, and a vector that grows begins with room for
                // more.
                let mut list: Vec<T> = items.next_element()?.into_iter().collect();
                while let Some(item) = items.next_element()? {
                    list.push(item);
                }
                Ok(List(list))
            }
            absent!(bool number string null object);
        }
        deserializer.deserialize_any(Expected(PhantomData))
    }
}

impl<'de> Deserialize<'de> for Present {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Expected;
        impl<'de> Visitor<'de> for Expected {
            type Value = Present;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("anything")
            }
            fn visit_bool<E: Error>(self, value: bool) -> Result<Present, E> {
                Ok(Present(value))
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Present, E> {
                Ok(Present(!text.is_empty()))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Present, A::Error> {
                let mut any = false;
                while items.next_element::<IgnoredAny>()?.is_some() {
                    any = true;
                }
                Ok(Present(any))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Present, A::Error> {
                let mut any = false;
                while entries.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {
                    any = true;
                }
                Ok(Present(any))
            }
            absent!(number null);
        }
        deserializer.deserialize_any(Expected)
    }
}
