"""Users, roles, quotas, sign-in and the audit trail."""
