//! Reads the fields of a request object.
//!
//! Only what crosses value by value is read here (commands, paths, file
//! content); other requests cross as JSON text. Types are checked, rules are
//! not: they are the verb's. An error names the field and never its value.
//!
//! Text: a JavaScript string may hold half of a surrogate pair, which N-API's
//! UTF-8 would silently replace, and NUL, which no argument, path or variable
//! can hold. The client refuses both where it knows the argument's name for
//! the caller; decoding here is strict, so that a caller without the client
//! cannot have another string run than the one it passed.

use std::collections::BTreeMap;

use bytes::Bytes;
use napi::bindgen_prelude::{JsObjectValue, JsValue, Object, Uint8ArraySlice, Unknown};
use napi::{JsString, KeyCollectionMode, KeyConversion, KeyFilter, ValueType};

use crate::adapter::Program;
use crate::error::{Error, Result};

/// A request object. Every read may run a getter of the caller's, so a field
/// is read once.
pub(super) struct Arguments<'env>(Object<'env>);

impl<'env> Arguments<'env> {
    pub(super) fn of(object: Object<'env>) -> Self {
        Self(object)
    }

    pub(super) fn text(&self, name: &str) -> Result<String> {
        self.optional_text(name)?
            .ok_or_else(|| wrong(name, "a string"))
    }

    pub(super) fn optional_text(&self, name: &str) -> Result<Option<String>> {
        self.field(name)?
            .map(|value| text(&value, name))
            .transpose()
    }

    pub(super) fn optional_number(&self, name: &str) -> Result<Option<f64>> {
        let Some(value) = self.field(name)? else {
            return Ok(None);
        };
        if !is(&value, ValueType::Number) {
            return Err(wrong(name, "a number"));
        }
        readable(
            value
                .coerce_to_number()
                .and_then(|number| number.get_double()),
            name,
        )
        .map(Some)
    }

    /// A whole number of 0 or more that fits the type.
    pub(super) fn optional_whole<N: TryFrom<u64>>(&self, name: &str) -> Result<Option<N>> {
        let Some(number) = self.optional_number(name)? else {
            return Ok(None);
        };
        let whole = (number >= 0.0 && number.fract() == 0.0).then_some(number as u64);
        let fitting = whole.and_then(|whole| N::try_from(whole).ok());
        fitting
            .map(Some)
            .ok_or_else(|| wrong(name, "a whole number of 0 or more"))
    }

    /// A record of strings, such as `env`. Own enumerable keys, `__proto__` included.
    pub(super) fn optional_texts_by_name(
        &self,
        name: &str,
    ) -> Result<Option<BTreeMap<String, String>>> {
        let Some(value) = self.field(name)? else {
            return Ok(None);
        };
        if !is(&value, ValueType::Object) || readable(value.is_array(), name)? {
            return Err(wrong(name, "an object of strings"));
        }
        let record = readable(value.coerce_to_object(), name)?;
        let keys = record.get_all_property_names(
            KeyCollectionMode::OwnOnly,
            KeyFilter::Enumerable,
            KeyConversion::NumbersToStrings,
        );
        let keys = readable(keys, name)?;
        let length = readable(keys.get_array_length(), name)?;
        (0..length)
            .map(|index| {
                let key: JsString<'_> = readable(keys.get_element(index), name)?;
                let each: Unknown<'_> = readable(record.get_property(key), name)?;
                let key = text(&key.to_unknown(), name)?;
                let each = text(&each, &format!("{name}.{key}"))?;
                Ok((key, each))
            })
            .collect::<Result<_>>()
            .map(Some)
    }

    fn field(&self, name: &str) -> Result<Option<Unknown<'env>>> {
        let value: Unknown<'env> = readable(self.0.get_named_property(name), name)?;
        Ok(Some(value).filter(|value| !is(value, ValueType::Undefined)))
    }
}

/// What to run: an array is argv, a string is shell text.
pub(super) fn program(value: &Unknown<'_>, name: &str) -> Result<Program> {
    if is(value, ValueType::String) {
        return text(value, name).map(Program::ShellText);
    }
    if !readable(value.is_array(), name)? {
        return Err(wrong(name, "a string or an array of strings"));
    }
    let list = readable(value.coerce_to_object(), name)?;
    let length = readable(list.get_array_length(), name)?;
    (0..length)
        .map(|index| text(&readable(list.get_element(index), name)?, name))
        .collect::<Result<_>>()
        .map(Program::Arguments)
}

/// A copy of the caller's bytes: they may change, move or go away as soon as
/// the call returns. The loader has checked that the view is sound.
pub(super) fn copied(view: &Uint8ArraySlice<'_>) -> Bytes {
    Bytes::copy_from_slice(view)
}

/// A whole string without NUL.
pub(super) fn text(value: &Unknown<'_>, name: &str) -> Result<String> {
    if !is(value, ValueType::String) {
        return Err(wrong(name, "a string"));
    }
    // Converts nothing: it is a string.
    let units = readable(
        value.coerce_to_string().and_then(JsString::into_utf16),
        name,
    )?;
    // N-API ends what it writes with a NUL of its own.
    let units = units
        .as_slice()
        .split_last()
        .map_or(&[][..], |(_, units)| units);
    if units.contains(&0) {
        return Err(Error::invalid_argument(format!(
            "{name} must not hold a NUL character"
        )));
    }
    String::from_utf16(units).map_err(|_| {
        Error::invalid_argument(format!("{name} must not hold half of a surrogate pair"))
    })
}

fn is(value: &Unknown<'_>, kind: ValueType) -> bool {
    value.get_type().is_ok_and(|found| found == kind)
}

fn wrong(name: &str, wanted: &str) -> Error {
    Error::invalid_argument(format!("{name} must be {wanted}"))
}

/// What fails here is code of the caller, such as a getter that throws. Its
/// exception is the caller's to see, so it must not be named in a message.
fn readable<T>(read: napi::Result<T>, name: &str) -> Result<T> {
    read.map_err(|_| Error::invalid_argument(format!("{name} could not be read")))
}
