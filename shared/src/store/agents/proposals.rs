//! Proposals. They wait for a person's approval and are deleted when they are accepted.

use domain::chats::Proposal;
use domain::ids::{AgentId, Owner, ProposalId};
use jiff::Timestamp;

use super::child;
use crate::store::keys;
use crate::store::table::{Extras, Order, QueryPage, Store, StoreError, Versioned, Write, Written, item};

impl Store {
    pub fn proposal_writes(owner: &Owner, proposal: &Proposal) -> Result<Vec<Write>, StoreError> {
        let extras = Extras::expiring(proposal.expires_at);
        Ok(vec![
            Write::Put { key: keys::proposal(owner, proposal.proposal_id), item: item(proposal, &extras)? },
            child(owner, proposal.agent_id, proposal.proposal_id, &extras)?,
        ])
    }

    /// The write that marks a proposal as replaced. Refused if it was accepted, discarded or replaced since.
    pub fn supersede_write(
        owner: &Owner,
        older: Versioned<Proposal>,
        newer: ProposalId,
    ) -> Result<Write, StoreError> {
        let Versioned { value, version } = older;
        let superseded = Proposal { superseded_by: Some(newer), ..value };
        let key = keys::proposal(owner, superseded.proposal_id);
        let item = item(&superseded, &Extras::expiring(superseded.expires_at))?;
        Ok(Write::Replace { key, version, item })
    }

    /// A proposal that has not expired. DynamoDB may take two days to delete an expired one.
    pub async fn proposal(
        &self,
        owner: &Owner,
        id: ProposalId,
        now: Timestamp,
    ) -> Result<Option<Proposal>, StoreError> {
        let found = self.get::<Proposal>(&keys::proposal(owner, id)).await?;
        Ok(found.map(|found| found.value).filter(|proposal| proposal.expires_at > now))
    }

    /// All proposals, newest first. Some may have expired.
    pub async fn proposals(
        &self,
        owner: &Owner,
        after: Option<&str>,
        limit: usize,
    ) -> Result<QueryPage<Proposal>, StoreError> {
        self.query(&keys::proposals(owner), after, limit, Order::Newest).await
    }

    /// An agent's proposals, newest first.
    pub async fn agent_proposals(
        &self,
        owner: &Owner,
        agent: AgentId,
        after: Option<&str>,
        limit: usize,
    ) -> Result<QueryPage<Proposal>, StoreError> {
        let marks =
            self.agent_children(owner, agent, ProposalId::PREFIX, after, limit, Order::Newest).await?;
        self.resolve(marks, |id: ProposalId| keys::proposal(owner, id)).await
    }

    /// The writes that consume a proposal. Refused if another request has consumed it.
    #[must_use]
    pub fn take_proposal(owner: &Owner, proposal: &Proposal) -> Vec<Write> {
        vec![
            Write::Delete { key: keys::proposal(owner, proposal.proposal_id), must_exist: true },
            Write::Delete {
                key: keys::agent_child(owner, proposal.agent_id, proposal.proposal_id),
                must_exist: false,
            },
        ]
    }

    pub async fn delete_proposal(&self, owner: &Owner, proposal: &Proposal) -> Result<Written, StoreError> {
        self.write_all(Self::take_proposal(owner, proposal)).await
    }
}
