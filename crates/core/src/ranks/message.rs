//! Messages between ranks as little-endian 64-bit words, so that ranks on different machines can communicate.

use crate::error::{CoreError, Result};

/// Appends `words` to `message`.
pub fn put_u64s(message: &mut Vec<u8>, words: impl IntoIterator<Item = u64>) {
    for word in words {
        message.extend_from_slice(&word.to_le_bytes());
    }
}

/// Encodes `words` as a message.
pub fn encode_u64s(words: impl IntoIterator<Item = u64>) -> Vec<u8> {
    let mut message = Vec::new();
    put_u64s(&mut message, words);
    message
}

/// Decodes a number from up to eight bytes.
pub(crate) fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// Reader of the words of a message; a truncated message is an error.
#[derive(Debug, Clone)]
pub struct MessageReader<'a> {
    operation: &'static str,
    bytes: &'a [u8],
    at: usize,
}

impl<'a> MessageReader<'a> {
    /// Creates a reader of `bytes`; errors name `operation`.
    pub fn new(operation: &'static str, bytes: &'a [u8]) -> Self {
        Self { operation, bytes, at: 0 }
    }

    /// Reads the next word.
    ///
    /// # Errors
    /// If the message ends before it.
    pub fn word(&mut self) -> Result<u64> {
        let word = self.bytes.get(self.at..self.at + 8).ok_or_else(|| self.error())?;
        self.at += 8;
        Ok(number(word))
    }

    /// Reads the next `N` words.
    ///
    /// # Errors
    /// If the message ends before them.
    pub fn words<const N: usize>(&mut self) -> Result<[u64; N]> {
        let mut words = [0; N];
        for word in &mut words {
            *word = self.word()?;
        }
        Ok(words)
    }

    /// Reads the next `len_bytes` bytes.
    ///
    /// # Errors
    /// If the message ends before them.
    pub fn bytes(&mut self, len_bytes: u64) -> Result<&'a [u8]> {
        let end = usize::try_from(len_bytes).ok().and_then(|len_bytes| self.at.checked_add(len_bytes));
        let bytes = end.and_then(|end| self.bytes.get(self.at..end)).ok_or_else(|| self.error())?;
        self.at += bytes.len();
        Ok(bytes)
    }

    /// Returns the remaining bytes.
    pub fn rest(self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    /// Returns the error for a message that is truncated or contradicts facts known to both sides.
    pub fn error(&self) -> CoreError {
        let operation = self.operation;
        CoreError::MessageLength { operation, got_bytes: self.bytes.len(), expected_bytes: self.at + 8 }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn words_travel_and_a_cut_message_is_an_error() {
        let message = encode_u64s([1, u64::MAX]);
        let mut words = MessageReader::new("a test", &message);
        assert_eq!(words.words::<2>().unwrap(), [1, u64::MAX]);
        assert!(words.word().is_err());
        let mut words = MessageReader::new("a test", &message[..15]);
        assert_eq!((words.word().unwrap(), words.bytes(7).unwrap()), (1, &[0xFF; 7][..]));
        assert!(words.bytes(1).is_err() && words.bytes(u64::MAX).is_err());
        assert!(MessageReader::new("a test", &message[..15]).words::<2>().is_err());
    }
}
