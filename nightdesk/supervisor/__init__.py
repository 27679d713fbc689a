"""Keeping processes alive on a machine that nobody watches. It knows nothing of what they do."""

from nightdesk.supervisor.children import ChildSpec, Service
from nightdesk.supervisor.lock import DataFolderLock
from nightdesk.supervisor.network import who_listens
from nightdesk.supervisor.supervisor import Supervisor

__all__ = ["ChildSpec", "DataFolderLock", "Service", "Supervisor", "who_listens"]
