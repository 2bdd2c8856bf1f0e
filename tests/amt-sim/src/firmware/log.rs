//! Event log of the engine (AMT_MessageLog): records of 21 bytes, newest first.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::{Executed, Firmware};
use crate::soap::Request;

/// Maximum records of the log, and of one answer.
const RECORDS_MAX: usize = 390;
/// Return value of both methods for a log without a record.
const EMPTY: u32 = 2;

impl Firmware {
    /// Executes a method of the log. Returns the output values as XML, and the return value.
    pub(super) fn read_log(
        &self,
        request: &Request<'_>,
        method: &str,
    ) -> Result<(String, u32), Executed> {
        let number = |name: &str| request.parameter(name).and_then(|text| text.parse().ok());
        match method {
            "PositionToFirstRecord" if self.records.is_empty() => Ok((String::new(), EMPTY)),
            "PositionToFirstRecord" => Ok((identifier(1), 0)),
            "GetRecords" => {
                let start: usize = number("IterationIdentifier").unwrap_or(0);
                let count: usize = number("MaxReadRecords").unwrap_or(0);
                let page = match self.behavior.log_page {
                    0 => RECORDS_MAX,
                    page => page,
                };
                Ok(self.records_from(start, count.min(page)))
            }
            _ => Err(Executed::Fault("b:ActionNotSupported", "The action is not supported.")),
        }
    }

    /// Returns an answer with records from the number `start` on, which counts from 1.
    fn records_from(&self, start: usize, count: usize) -> (String, u32) {
        let mut slots: Vec<[u8; 21]> = self.records.iter().rev().copied().collect();
        if self.behavior.log_is_padded {
            slots.resize(RECORDS_MAX, [0; 21]);
        }
        let Some(first) = start.checked_sub(1).filter(|first| *first < slots.len()) else {
            return (String::new(), EMPTY);
        };
        let page: Vec<_> = slots.iter().skip(first).take(count).collect();
        let next = first + page.len();
        let mut output = identifier(next + 1);
        let _ = write!(output, "<g:NoMoreRecords>{}</g:NoMoreRecords>", next == slots.len());
        for record in page {
            let _ = write!(output, "<g:RecordArray>{}</g:RecordArray>", STANDARD.encode(record));
        }
        (output, 0)
    }
}

fn identifier(number: usize) -> String {
    format!("<g:IterationIdentifier>{number}</g:IterationIdentifier>")
}
