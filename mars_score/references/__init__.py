"""What the references of a data set are like, before anyone scores with them."""

from mars_score.references.rows import ReferenceRow
from mars_score.references.survey import ReferenceSurvey, survey_references

__all__ = ["ReferenceRow", "ReferenceSurvey", "survey_references"]
