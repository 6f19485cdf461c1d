//! The part of the stuck board that this page is about: scope, lanes, one keyset page.

use crate::context::Visit;
use domain::page::{decode_cursor, encode_cursor};
use domain::record::{RecordId, RecordRow};
use domain::services::stuck::BoardScope;
use domain::stuck::{Board, Lane};
use std::collections::BTreeSet;

/// Rows on one page.
const PAGE: usize = 50;

/// The parameters that narrow the queue.
pub const FILTERS: [&str; 3] = ["source", "biz_type", "lane"];

/// The board seen through the address's filters.
pub struct Queue<'a> {
    pub board: &'a Board,
    pub scope: BoardScope,
    /// A `lane` that is none.
    pub bad_lane: Option<String>,
}

/// Where a page ends: since when its last record is stuck (epoch ms by the console's clock), and which it is.
type Place = (i64, RecordId);

impl<'a> Queue<'a> {
    pub fn read(visit: &Visit, board: &'a Board) -> Self {
        let asked = visit.param("lane");
        let lane = asked.and_then(Lane::parse);
        let given = |name| visit.param(name).map(str::to_owned);
        Self {
            board,
            scope: BoardScope { source: given("source"), biz_type: given("biz_type"), lane },
            bad_lane: asked.filter(|_| lane.is_none()).map(str::to_owned),
        }
    }

    /// The scope with another lane, or with all of them.
    pub fn scope_of(&self, lane: Option<Lane>) -> BoardScope {
        BoardScope { lane, ..self.scope.clone() }
    }

    /// The rows of one lane, whatever lane is chosen; oldest first.
    pub fn lane(&self, lane: Lane) -> Vec<&'a RecordRow> {
        self.rows(&self.scope_of(Some(lane)))
    }

    /// The rows of the chosen lane, or of all.
    pub fn shown(&self) -> Vec<&'a RecordRow> {
        self.rows(&self.scope)
    }

    fn rows(&self, scope: &BoardScope) -> Vec<&'a RecordRow> {
        self.board.rows.iter().filter(|row| scope.holds(row)).collect()
    }

    /// The business types on the board, for the filter: memory, not a DISTINCT over a table.
    pub fn biz_types(&self) -> BTreeSet<&'a str> {
        self.board.rows.iter().filter_map(|row| row.biz_type.as_deref()).collect()
    }

    /// One page of the shown rows behind `cursor`, and the cursor of the next.
    pub fn page(&self, cursor: Option<&str>) -> domain::Result<(Vec<&'a RecordRow>, Option<String>)> {
        let rows = self.shown();
        let start = match cursor.map(decode_cursor::<Place>).transpose()? {
            None => 0,
            Some(place) => self.behind(&rows, &place),
        };
        let page: Vec<_> = rows.iter().copied().skip(start).take(PAGE).collect();
        let more = rows.len() > start + page.len();
        let next = page.last().filter(|_| more).map(|row| encode_cursor(&(self.since_ms(row), &row.id)));
        Ok((page, next))
    }

    /// Behind the record where the last page ended; if it is settled by now, behind the place where it was.
    fn behind(&self, rows: &[&RecordRow], (since, id): &Place) -> usize {
        match rows.iter().position(|row| row.id == *id) {
            Some(found) => found + 1,
            None => rows.partition_point(|row| self.since_ms(row) <= *since),
        }
    }

    /// The board's order as one number; records without an age come last.
    fn since_ms(&self, row: &RecordRow) -> i64 {
        let age_ms = row.age_seconds.map(|seconds| seconds.saturating_mul(1_000));
        age_ms.map_or(i64::MAX, |age| self.board.read_at.timestamp_millis().saturating_sub(age))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::DateTime;
    use domain::evidence::Verdict;
    use domain::record::{State, Version};

    fn row(number: i64) -> RecordRow {
        RecordRow {
            id: RecordId::new("orders", vec![number.to_string()]),
            source: "orders".into(),
            key: number.to_string(),
            biz_type: Some("ORDER".into()),
            biz_no: None,
            state: State::Processing,
            native_state: None,
            created_at: None,
            updated_at: None,
            age_seconds: Some(10_000 - number),
            stuck_after_seconds: 600,
            stuck: true,
            lease_until: None,
            attempts: None,
            version: Version::new(State::Processing, "1"),
            verdict: (number % 2 == 0).then_some(Verdict::Found),
            verdict_at: None,
        }
    }

    fn board(numbers: impl Iterator<Item = i64>) -> Board {
        Board {
            rows: numbers.map(row).collect(),
            more: false,
            down: Vec::new(),
            read_at: DateTime::UNIX_EPOCH,
        }
    }

    fn queue(board: &Board) -> Queue<'_> {
        Queue { board, scope: BoardScope::default(), bad_lane: None }
    }

    fn keys(rows: &[&RecordRow]) -> Vec<i64> {
        rows.iter().map(|row| row.key.parse().unwrap()).collect()
    }

    #[test]
    fn pages_follow_each_other_without_gap_or_repeat() {
        let board = board(0..120);
        let (mut seen, mut cursor) = (Vec::new(), None);
        loop {
            let (page, next) = queue(&board).page(cursor.as_deref()).unwrap();
            seen.extend(keys(&page));
            cursor = next;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(seen, (0..120).collect::<Vec<_>>());
    }

    #[test]
    fn the_next_page_holds_when_the_record_at_its_edge_was_settled() {
        let before = board(0..120);
        let (_, next) = queue(&before).page(None).unwrap();
        let after = board((0..120).filter(|number| *number != 49 && *number != 3));
        let (page, _) = queue(&after).page(next.as_deref()).unwrap();
        assert_eq!(keys(&page)[0], 50);
    }

    #[test]
    fn lanes_add_up_to_everything() {
        let board = board(0..7);
        let queue = queue(&board);
        let total: usize = Lane::ALL.into_iter().map(|lane| queue.lane(lane).len()).sum();
        assert_eq!(total, queue.shown().len());
    }

    #[test]
    fn a_cursor_of_another_page_is_refused() {
        let board = board(0..3);
        for hostile in ["", "x", "bnVsbA", "%%%"] {
            assert!(queue(&board).page(Some(hostile)).is_err(), "{hostile}");
        }
    }
}
