//! Event log of the firmware: position, then pages of records.

use super::{Amt, malformed};
use crate::envelope::{Class, Parameter};
use crate::event_log::{PAGE_RECORDS, Page, Record};
use crate::line::Turn;
use crate::{Error, ReturnTable, ReturnValue};

const LOG: Class = Class("AMT_MessageLog");
/// Return values of a log without a record, of `PositionToFirstRecord` and of `GetRecords`.
const EMPTY: std::ops::RangeInclusive<u32> = 2..=3;
/// Maximum answers of one reading. AMT 12 sends the whole log in one.
const PAGES_MAX: usize = 64;

impl Amt {
    /// Reads the newest records of the event log, at most `limit`, oldest first.
    ///
    /// # Errors
    /// The machine does not answer, refuses the login, has no event log, or sends an invalid
    /// answer.
    pub async fn events(&self, limit: usize) -> Result<Vec<Record>, Error> {
        let read = async |turn: &mut Turn<'_>| {
            let missing = Error::Unsupported {
                what: "the event log",
                reason: "the firmware does not have the class AMT_MessageLog",
            };
            let log = turn.find(LOG, &[]).await?.ok_or(missing)?;
            let count = log.number::<usize>("CurrentNumberOfRecords");
            let count = count.map_err(|source| malformed(LOG, source))?;
            // A cleared log has more records than this number: empty ones.
            let wanted = limit.min(count.unwrap_or(limit));
            let mut records = newest(turn, wanted).await?;
            records.reverse();
            Ok(records)
        };
        self.line.turn(&self.endpoint, read).await
    }
}

/// Reads records, newest first.
async fn newest(turn: &mut Turn<'_>, wanted: usize) -> Result<Vec<Record>, Error> {
    let mut records = Vec::new();
    let first = query(turn, "PositionToFirstRecord", &[]).await?;
    let mut next =
        first.and_then(|output| output.text_of("IterationIdentifier").map(str::to_owned));
    let most = PAGE_RECORDS.to_string();
    for _ in 0..PAGES_MAX {
        let Some(position) = next.take().filter(|_| records.len() < wanted) else { break };
        let parameters = [
            Parameter::Text("IterationIdentifier", &position),
            Parameter::Text("MaxReadRecords", &most),
        ];
        let Some(output) = query(turn, "GetRecords", &parameters).await? else { break };
        let page = Page::read(&output).map_err(|source| malformed(LOG, source))?;
        records.extend(page.records);
        next = page.next.filter(|next| *next != position);
    }
    records.truncate(wanted);
    Ok(records)
}

/// Calls a method of the log; `None` if the log has no record there.
async fn query(
    turn: &mut Turn<'_>,
    method: &str,
    parameters: &[Parameter<'_>],
) -> Result<Option<crate::message::Element>, Error> {
    match turn.query(LOG, method, parameters).await? {
        (output, 0) => Ok(Some(output)),
        (_, value) if EMPTY.contains(&value) => Ok(None),
        (_, value) => {
            let value = ReturnValue { value, table: ReturnTable::Boot };
            Err(Error::Refused { step: format!("{LOG}.{method}"), value })
        }
    }
}
