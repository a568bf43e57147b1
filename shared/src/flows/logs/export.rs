//! Exports all logs as a zip of files. The zip is written while it is sent, so only a little of it is in memory.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use bytes::Bytes;
use domain::ids::{Owner, ProjectId};
use domain::log::{Entry, InstanceId, SessionId, layout};
use futures::Stream;
use jiff::Timestamp;

use super::read::{Pages, parse};
use super::segments::Log;
use crate::context::Cx;
use crate::error::Result;
use crate::flows::archive::{self, Sent, Stopped};
use crate::store::logs::LogSession;
use crate::store::table::Order;

/// How many sessions, or logs of one session, a query reads.
const PAGE: usize = 100;

/// What is exported.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Only sessions of this project.
    pub project: Option<ProjectId>,
    /// Only this session.
    pub session: Option<SessionId>,
}

/// The archive, piece by piece. It ends with an error if something could not be read.
pub fn archive(cx: Cx, owner: Owner, selection: Selection) -> impl Stream<Item = Result<Bytes>> + use<> {
    archive::sent(|zip| async move { write(&cx, &owner, &selection, zip).await })
}

async fn write(cx: &Cx, owner: &Owner, selection: &Selection, mut zip: Sent) -> Result<(), Stopped> {
    let mut sessions = Sessions::new(owner, selection);
    while let Some(session) = sessions.next(cx).await? {
        for agent in agents(cx, owner, &session).await? {
            zip.file(&layout::log_path(&session, &agent))?;
            let mut pages = Pages::new(Log { owner, session: &session, agent: &agent });
            while let Some(page) = pages.next(cx).await? {
                zip.write(&page).await?;
            }
        }
        zip.file(&layout::instructions_path(&session))?;
        merged(cx, owner, &session, &mut zip).await?;
    }
    zip.file(layout::ALL_INSTRUCTIONS)?;
    let mut sessions = Sessions::new(owner, selection);
    while let Some(session) = sessions.next(cx).await? {
        merged(cx, owner, &session, &mut zip).await?;
    }
    zip.finish().await
}

/// The sessions to export, in the order in which they began.
struct Sessions<'a> {
    owner: &'a Owner,
    selection: &'a Selection,
    page: std::vec::IntoIter<LogSession>,
    after: Option<String>,
    end: bool,
}

impl<'a> Sessions<'a> {
    fn new(owner: &'a Owner, selection: &'a Selection) -> Self {
        Self { owner, selection, page: Vec::new().into_iter(), after: None, end: false }
    }

    async fn next(&mut self, cx: &Cx) -> Result<Option<SessionId>> {
        let Selection { project, session } = self.selection;
        loop {
            let fits = |found: &LogSession| {
                project.is_none_or(|project| found.project_id == project)
                    && session.as_ref().is_none_or(|session| found.session_id == *session)
            };
            if let Some(found) = self.page.find(fits) {
                return Ok(Some(found.session_id));
            }
            if self.end {
                return Ok(None);
            }
            let found = cx.store.log_sessions(self.owner, self.after.as_deref(), PAGE, Order::Oldest).await?;
            self.end = found.last.is_none();
            self.after = found.last;
            self.page =
                found.items.into_iter().map(|(_, session)| session.value).collect::<Vec<_>>().into_iter();
        }
    }
}

/// The agents of a session, and always `main`, even if it has no log.
async fn agents(cx: &Cx, owner: &Owner, session: &SessionId) -> Result<Vec<InstanceId>> {
    let (mut agents, mut after) = (Vec::new(), None);
    loop {
        let found = cx.store.log_heads(owner, session, after.as_deref(), PAGE).await?;
        agents.extend(found.items.into_iter().map(|(_, head)| head.value.agent_id));
        after = found.last;
        if after.is_none() {
            break;
        }
    }
    if !agents.contains(&InstanceId::main()) {
        agents.push(InstanceId::main());
    }
    Ok(agents)
}

/// Writes the lines of all agents of a session, ordered by time.
async fn merged(cx: &Cx, owner: &Owner, session: &SessionId, zip: &mut Sent) -> Result<(), Stopped> {
    let agents = agents(cx, owner, session).await?;
    let mut logs = Vec::with_capacity(agents.len());
    let mut order = BinaryHeap::new();
    for (number, agent) in agents.iter().enumerate() {
        let mut lines = Lines::new(Log { owner, session, agent });
        if let Some(at) = lines.time(cx).await? {
            order.push(Reverse((at, number)));
        }
        logs.push(lines);
    }
    while let Some(Reverse((_, number))) = order.pop() {
        let lines = &mut logs[number];
        let line = lines.take();
        zip.write(&line).await?;
        if let Some(at) = lines.time(cx).await? {
            order.push(Reverse((at, number)));
        }
    }
    Ok(())
}

/// Reads a log line by line.
struct Lines<'a> {
    log: Log<'a>,
    pages: Pages<'a>,
    page: Bytes,
}

impl<'a> Lines<'a> {
    fn new(log: Log<'a>) -> Self {
        Self { log, pages: Pages::new(log), page: Bytes::new() }
    }

    fn length(&self) -> usize {
        self.page.iter().position(|&byte| byte == b'\n').map_or(self.page.len(), |at| at + 1)
    }

    /// The time of the next line. `None` at the end.
    async fn time(&mut self, cx: &Cx) -> Result<Option<Timestamp>> {
        if self.page.is_empty() {
            match self.pages.next(cx).await? {
                Some(page) => self.page = page,
                None => return Ok(None),
            }
        }
        let line: Entry = parse(self.log, &self.page[..self.length()])?;
        Ok(Some(line.timestamp))
    }

    /// Takes the next line, with its newline.
    fn take(&mut self) -> Bytes {
        self.page.split_to(self.length())
    }
}
