"""English abbreviations whose period belongs to them, as the Europarl and Moses tools know them."""

_INITIALS = "A B C D E F G H I J K L M N O P Q R S T U V W X Y Z"
_TITLES = """
    Adj Adm Adv Asst Bart Brig Bros Capt Cmdr Col Comdr Con Cpl DR Dr Drs Ens Gen Gov Hon Hr Insp
    Lt MM MR MRS MS Maj Messrs Mlle Mme Mr Mrs Ms Msgr Pfc Ph Prof Pvt Rep Reps Res Rev Rt Sen Sens
    Sfc Sgt Sr St Supt Surg
"""
_OTHERS = "Bldg Corp Hosp Nos Nr Op Ord Rs e.g i.e rev v vs"
_MONTHS = "Jan Feb Mar Apr Jun Jul Aug Sep Oct Nov Dec"

ALWAYS = frozenset(f"{_INITIALS} {_TITLES} {_OTHERS} {_MONTHS}".split())
"""A period after one of these never ends a sentence."""

BEFORE_NUMBERS = frozenset(["Art", "No", "pp"])
"""A period after one of these does not end a sentence if a number follows."""
