"""The sources of the rated sets: addresses of their files, licences, and readers.

Addresses name a commit where one with the file is known; ``main``, ``master`` and ``HEAD`` are the newest version.
No checksum of a file is known beforehand: the first download records it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote

from research.ratings import readers
from research.ratings.readers import Reader


@dataclass(frozen=True)
class Source:
    """Where a set comes from.

    Attributes:
        reader: of the files' form.
        licence: as the repository states it; "none stated" where it states none.
        folder: of the downloads; sets that share files share it.
        files: addresses by the names that the reader knows; instead of an address, where to get the file by hand.
    """

    reader: Reader
    licence: str
    folder: str
    files: Mapping[str, str]


def _github(folder: str, *names: str) -> dict[str, str]:
    """Return the raw addresses of files by their names; the folder is OWNER/REPOSITORY@COMMIT/PATH."""
    repository, _, path = folder.partition("@")
    return {name: f"https://raw.githubusercontent.com/{repository}/{quote(path)}/{quote(name)}" for name in names}


def _bartscore(folder: str) -> dict[str, str]:
    return _github(f"neulab/BARTScore@40c658fb5c8686cfef852bb73777439beb7d44ef/{folder}", "data.pkl")


def _grade(dataset: str, *systems: str) -> Source:
    texts = [f"{dataset}/{system}/human_{part}.txt" for system in systems for part in ("ctx", "hyp", "ref")]
    files = {
        **_github(
            "li3cmz/GRADE@08651a6dce7e5c6d68158e35ab94c900819a68ed/evaluation/human_score", "human_judgement.json"
        ),
        **_github("James-Yip/QuantiDCE@07a6739fcd443286741d6b0227b755d6791215d3/evaluation/eval_data", *texts),
    }
    return Source(readers.grade(dataset, *systems), "none stated", "grade", files)


_UNION = "thu-coai/UNION@f675d7bb57454b70bdaf1e62f45834f08e80d613"
_EVOUNA = "wangcunxiang/QA-Eval@5e82f3cb5b7e9a583803e4fc6fe4b5c794f74024/EVOUNA"
_MOHLER = (
    "gsasikiran/Comparative-Evaluation-of-Pretrained-Transfer-Learning-Models-on-ASAG"
    "@bd8c283d8372c56829d98b1f562aa6a1a8f205d9/comparative_evaluation_on_mohler_dataset/dataset"
)
_SIMPLIFICATIONS = [f"asset.test.simp.{number}" for number in range(10)]
_ASSET = _github("facebookresearch/asset@main/dataset", "asset.test.orig", *_SIMPLIFICATIONS)
_TEAMS = (
    *("Amazon_AI_(Shanghai)", "Baseline-FORGE2017", "Baseline-FORGE2020", "CycleGT", "DANGNT-SGU", "FBConvAI"),
    *("Huawei_Noahs_Ark_Lab", "NILC", "NUIG-DSI", "ORANGE-NLG", "OSU_Neural_NLG", "RALI", "TGen", "UPC-POE"),
    *("bt5", "cuni-ufal"),
)

SOURCES = {
    "newsroom": Source(
        readers.newsroom,
        "Apache-2.0",
        "newsroom",
        {**_github("lil-lab/newsroom@master/humaneval", "newsroom-human-eval.csv"), **_bartscore("SUM/Newsroom")},
    ),
    "summeval": Source(
        readers.bartscore_summaries("coherence", "consistency", "fluency", "relevance"),
        "MIT",
        "summeval",
        _bartscore("SUM/SummEval"),
    ),
    "realsumm": Source(
        readers.bartscore_summaries("litepyramid_recall"), "Apache-2.0", "realsumm", _bartscore("SUM/REALSumm")
    ),
    "dialsummeval": Source(
        readers.dialsummeval,
        "none stated",
        "dialsummeval",
        _github(
            "kite99520/DialSummEval@327bb0dd0890ae80ecda77e16d7c3cd6d67ae84d/annotation_campus",
            "human_judgment.jsonl",
        ),
    ),
    "huse_gigaword": Source(
        readers.huse,
        "none stated",
        "huse",
        _github("hughbzhang/HUSE@7a2c2ad1dcb22984ebe488084d6e3c473a0ba9dc/data", "summarization_raw_outputs.csv"),
    ),
    "union_roc": Source(
        readers.union,
        "none stated",
        "union_roc",
        _github(f"{_UNION}/Data/ROCStories/ant_data", "ant_data_all.txt", "reference.txt"),
    ),
    "openmeva_roc": Source(
        readers.openmeva,
        "none stated",
        "openmeva",
        {"mags_roc.json": "the folder data/mags_data that the README of github.com/thu-coai/OpenMEVA links"},
    ),
    "qa_feedback": Source(
        readers.qa_feedback,
        "Apache-2.0",
        "qa_feedback",
        _github(
            "allenai/FineGrainedRLHF@5ffbe54b8d4d37ef002681849791594bcc9f1e3f/tasks/qa_feedback/data",
            "dev_feedback.json",
        ),
    ),
    "evouna_nq": Source(readers.evouna("NQ.json"), "Apache-2.0", "evouna", _github(_EVOUNA, "NQ.json")),
    "evouna_tq": Source(readers.evouna("TQ.json"), "Apache-2.0", "evouna", _github(_EVOUNA, "TQ.json")),
    "mohler_asag": Source(
        readers.mohler, "GPL-3.0 (of the copy)", "mohler_asag", _github(_MOHLER, "mohler_dataset_edited.csv")
    ),
    "usr_topicalchat": Source(
        readers.topicalchat,
        "MIT (of the copy)",
        "usr",
        _github(
            "maszhongming/UniEval@9d9b51dc716f40f6b454a4455c7fe2f843aabfbb/reproduce/data/dialogue",
            "topical_chat.json",
        ),
    ),
    "usr_personachat": Source(
        readers.personachat, "none stated", "usr", {"pc_usr_data.json": "http://shikib.com/pc_usr_data.json"}
    ),
    "grade_convai2": _grade("convai2", "bert_ranker", "dialogGPT", "transformer_generator", "transformer_ranker"),
    "grade_dailydialog": _grade("dailydialog_EVAL", "transformer_generator", "transformer_ranker"),
    "grade_empathetic": _grade("empatheticdialogues", "transformer_generator", "transformer_ranker"),
    "dailydialogpp": Source(
        readers.dailydialogpp,
        "none stated",
        "dailydialogpp",
        _github("iitmnlp/DailyDialog-plusplus@a01a44ddc03c2290f2c245c4efb7f7b8a3d958e8/dataset", "test-v1.0.json"),
    ),
    "asset_human": Source(
        readers.asset_human,
        "CC BY-NC",
        "asset",
        {
            **_github(
                "facebookresearch/asset@9237187db72530d5cd53c5f7e15db3a3064ae077/human_ratings",
                "human_ratings.csv",
            ),
            **_ASSET,
        },
    ),
    "simplicity_da": Source(
        readers.simplicity_da,
        "CC BY-NC (of the references)",
        "asset",
        {
            **_github(
                "feralvam/metaeval-simplification@bd578677090e0e9301374eb7fca4521bcf779046", "simplicity_DA.csv"
            ),
            **_github(
                "feralvam/metaeval-simplification@f3ca817c703953b0a053aae72aad174d0491dc1d/ratings_per_annotator",
                "simplicity_DA_ratings.csv",
            ),
            **_ASSET,
        },
    ),
    "bagel": Source(readers.bartscore_data, "Apache-2.0", "bagel", _bartscore("D2T/BAGEL")),
    "sfhot": Source(readers.bartscore_data, "Apache-2.0", "sfhot", _bartscore("D2T/SFHOT")),
    "sfres": Source(readers.bartscore_data, "Apache-2.0", "sfres", _bartscore("D2T/SFRES")),
    "e2e": Source(
        readers.e2e,
        "none stated (references CC BY-SA 4.0)",
        "e2e",
        {
            **_github(
                "tuetschek/e2e-eval@1b1f94c7379c756355b8defabf7630b43124ba6f/human_ratings",
                "quality.csv",
                "naturalness.csv",
            ),
            **_github("tuetschek/e2e-dataset@master", "testset_w_refs.csv"),
        },
    ),
    "webnlg20": Source(
        readers.webnlg(*_TEAMS),
        "none stated (WebNLG CC BY-NC-SA)",
        "webnlg20",
        {
            **_github(
                "WebNLG/challenge-2020@af4f18f01c718592b2358277bc52e955d0d49cf8/data/en/test",
                "rdf-to-text-generation-test-data-with-refs-en.xml",
            ),
            **_github(
                "WebNLG/challenge-2020@HEAD/evaluation/human-evaluation/results/en",
                *(f"{team}/primary.json" for team in _TEAMS),
            ),
            **_github(
                "WebNLG/challenge-2020@HEAD/submissions/rdf2text/en", *(f"{team}/primary.en" for team in _TEAMS)
            ),
        },
    ),
    "qgeval": Source(
        readers.qgeval,
        "none stated",
        "qgeval",
        _github("WeipingFu/QGEval@50286529ba6e3289ed78c61491403437c7269e70/data", "instances.json"),
    ),
}
