package team

// everyEvent returns an empty event of each kind that was ever recorded.
func everyEvent() []Event {
	return []Event{
		&TeamCreated{}, &TeamRestored{}, &TeamStatusChanged{}, &TeamCleanedUp{}, &DelegateChanged{},
		&BudgetChanged{}, &BudgetExhausted{}, &BudgetAlerted{}, &MemberBudgetChanged{},
		&MemberBudgetExhausted{}, &MemberSpawned{}, &MemberAttached{}, &MemberStarted{},
		&MemberStatusChanged{}, &MemberDetached{}, &MemberStopped{}, &MemberFailed{}, &MemberReturned{},
		&MemberDescribed{}, &TasksSkipped{}, &GapNoticed{}, &MemberTroubled{}, &HandoverRequested{},
		&InterruptRequested{}, &ReportAsked{}, &ReportGiven{}, &ModeChanged{}, &ShutdownRequested{},
		&ShutdownAnswered{}, &ShutdownWithdrawn{}, &PlanSubmitted{}, &PlanAnswered{}, &PermissionRequested{},
		&PermissionAnswered{}, &UsageReported{}, &HookRejected{}, &HookSwitched{}, &TaskCreated{},
		&TaskUpdated{}, &TaskClaimed{}, &TaskReleased{}, &TaskFailed{}, &TaskCompleted{}, &TaskDeleted{},
		&LeadAttached{}, &LeadLost{}, &FactsRecorded{}, &TeamMoved{}, &WorkSaved{}, &WorkRecorded{},
		&TaskRolledBack{}, &MessagesLate{}, &MessagesResent{}, &MemberOffline{}, &MemberOnline{},
		&BranchLeft{}, &TeamReleased{}, &TeamTakenBack{}, &WorkFound{}, &ConsolidationBegan{},
		&WorktreesMerged{}, &WorkStaged{}, &CheckPassed{}, &CheckFailed{}, &CommitMade{},
		&TeamConsolidated{}, &ConsolidationAbandoned{}, &MessageSent{}, &MessagesDelivered{},
		&MessagesRead{}, &MessagesReturned{}, &TeamRevised{}, &MemberRevised{}, &TaskRevised{}, &RuleAdded{},
		&RuleRemoved{}, &TaskRejected{}, &TaskSkipped{}, &PathsChanged{}, &WritesFound{}, &NoteSet{}, &NoteAppended{},
		&NoteDeleted{}, &RateLimited{}, &RateLimitLifted{}, &TurnGranted{}, &TaskExpanded{}, &TaskFolded{},
		&TaskSubmitted{}, &WordsRecorded{}, &ChildBegan{}, &ChildReported{}, &ChildEnded{},
		&ParentHeard{}, &MailPassedOn{}, &TeamConfined{},
	}
}

// newEvent returns an empty event of that kind, or nil if no event has that kind. A map would have
// to be built at the start of every command, so this is a switch.
func newEvent(kind string) Event {
	switch kind {
	case "branch_left":
		return &BranchLeft{}
	case "budget_alerted":
		return &BudgetAlerted{}
	case "budget_changed":
		return &BudgetChanged{}
	case "budget_exhausted":
		return &BudgetExhausted{}
	case "check_failed":
		return &CheckFailed{}
	case "check_passed":
		return &CheckPassed{}
	case "child_began":
		return &ChildBegan{}
	case "child_ended":
		return &ChildEnded{}
	case "child_reported":
		return &ChildReported{}
	case "commit_made":
		return &CommitMade{}
	case "consolidation_abandoned":
		return &ConsolidationAbandoned{}
	case "consolidation_began":
		return &ConsolidationBegan{}
	case "delegate_changed":
		return &DelegateChanged{}
	case "facts_recorded":
		return &FactsRecorded{}
	case "gap_noticed":
		return &GapNoticed{}
	case "handover_requested":
		return &HandoverRequested{}
	case "hook_rejected":
		return &HookRejected{}
	case "hook_switched":
		return &HookSwitched{}
	case "interrupt_requested":
		return &InterruptRequested{}
	case "lead_attached":
		return &LeadAttached{}
	case "lead_lost":
		return &LeadLost{}
	case "mail_passed_on":
		return &MailPassedOn{}
	case "member_attached":
		return &MemberAttached{}
	case "member_budget_changed":
		return &MemberBudgetChanged{}
	case "member_budget_exhausted":
		return &MemberBudgetExhausted{}
	case "member_described":
		return &MemberDescribed{}
	case "member_detached":
		return &MemberDetached{}
	case "member_failed":
		return &MemberFailed{}
	case "member_offline":
		return &MemberOffline{}
	case "member_online":
		return &MemberOnline{}
	case "member_returned":
		return &MemberReturned{}
	case "member_revised":
		return &MemberRevised{}
	case "member_spawned":
		return &MemberSpawned{}
	case "member_started":
		return &MemberStarted{}
	case "member_status_changed":
		return &MemberStatusChanged{}
	case "member_stopped":
		return &MemberStopped{}
	case "member_troubled":
		return &MemberTroubled{}
	case "message_sent":
		return &MessageSent{}
	case "messages_delivered":
		return &MessagesDelivered{}
	case "messages_late":
		return &MessagesLate{}
	case "messages_read":
		return &MessagesRead{}
	case "messages_resent":
		return &MessagesResent{}
	case "messages_returned":
		return &MessagesReturned{}
	case "mode_changed":
		return &ModeChanged{}
	case "note_appended":
		return &NoteAppended{}
	case "note_deleted":
		return &NoteDeleted{}
	case "note_set":
		return &NoteSet{}
	case "parent_heard":
		return &ParentHeard{}
	case "paths_changed":
		return &PathsChanged{}
	case "permission_answered":
		return &PermissionAnswered{}
	case "permission_requested":
		return &PermissionRequested{}
	case "plan_answered":
		return &PlanAnswered{}
	case "plan_submitted":
		return &PlanSubmitted{}
	case "rate_limit_lifted":
		return &RateLimitLifted{}
	case "rate_limited":
		return &RateLimited{}
	case "report_asked":
		return &ReportAsked{}
	case "report_given":
		return &ReportGiven{}
	case "rule_added":
		return &RuleAdded{}
	case "rule_removed":
		return &RuleRemoved{}
	case "shutdown_answered":
		return &ShutdownAnswered{}
	case "shutdown_requested":
		return &ShutdownRequested{}
	case "shutdown_withdrawn":
		return &ShutdownWithdrawn{}
	case "task_claimed":
		return &TaskClaimed{}
	case "task_completed":
		return &TaskCompleted{}
	case "task_created":
		return &TaskCreated{}
	case "task_deleted":
		return &TaskDeleted{}
	case "task_expanded":
		return &TaskExpanded{}
	case "task_failed":
		return &TaskFailed{}
	case "task_rejected":
		return &TaskRejected{}
	case "task_folded":
		return &TaskFolded{}
	case "task_released":
		return &TaskReleased{}
	case "task_revised":
		return &TaskRevised{}
	case "task_skipped":
		return &TaskSkipped{}
	case "task_rolled_back":
		return &TaskRolledBack{}
	case "task_submitted":
		return &TaskSubmitted{}
	case "task_updated":
		return &TaskUpdated{}
	case "tasks_skipped":
		return &TasksSkipped{}
	case "team_cleaned_up":
		return &TeamCleanedUp{}
	case "team_confined":
		return &TeamConfined{}
	case "team_consolidated":
		return &TeamConsolidated{}
	case "team_created":
		return &TeamCreated{}
	case "team_moved":
		return &TeamMoved{}
	case "team_released":
		return &TeamReleased{}
	case "team_restored":
		return &TeamRestored{}
	case "team_revised":
		return &TeamRevised{}
	case "team_status_changed":
		return &TeamStatusChanged{}
	case "team_taken_back":
		return &TeamTakenBack{}
	case "turn_granted":
		return &TurnGranted{}
	case "usage_reported":
		return &UsageReported{}
	case "writes_found":
		return &WritesFound{}
	case "words_recorded":
		return &WordsRecorded{}
	case "work_found":
		return &WorkFound{}
	case "work_recorded":
		return &WorkRecorded{}
	case "work_saved":
		return &WorkSaved{}
	case "work_staged":
		return &WorkStaged{}
	case "worktrees_merged":
		return &WorktreesMerged{}
	}
	return nil
}
