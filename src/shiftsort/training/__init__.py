"""From a recipe to a run folder: Lightning's Trainer, exact resume, one result at the end."""

from .errors import RunError
from .module import Scores, TrainingModule
from .predict import predict
from .train import Machine, evaluate, is_first_process, resume, train

__all__ = [
    "Machine",
    "RunError",
    "Scores",
    "TrainingModule",
    "evaluate",
    "is_first_process",
    "predict",
    "resume",
    "train",
]
