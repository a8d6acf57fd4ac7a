"""The paper's table of image classification, and its first comparison on CIFAR-10."""

from dataclasses import replace

from .recipe import Optimiser, Paper, Recipe, Schedule, ViT

#: Rows of the table, each by the mixer and what it takes; the wide one spends on values what
#: queries and keys would cost.
ROWS = ("mha", "shift", "sort", "csp", "csp-wide")

_PAPER = {
    "cifar10": ((81.90, 98.85), (83.84, 99.27), (79.41, 99.03), (84.81, 99.35), (85.02, 99.37)),
    "cifar100": ((53.30, 79.97), (58.38, 84.26), (51.47, 79.67), (59.16, 84.76), (59.23, 85.09)),
    "imagenet": ((76.53, 92.81), (75.64, 92.42), (64.77, 85.28), (76.66, 93.05), (77.14, 93.23)),
}
_ANALYSIS = {"mha": (81.90, 98.85), "head-shift": (80.70, 98.97), "channel-shift": (83.84, 99.27)}


def _paper(table: str, row: str) -> Paper:
    return Paper(*_PAPER[table][ROWS.index(row)])


def _with_row(model: ViT, row: str) -> ViT:
    if row == "csp-wide":
        return replace(model, mixer="csp", mixer_options={"channels": 2 * model.dim})
    return replace(model, mixer=row)


def cifar10(row: str) -> Recipe:
    """64 patches, groups of 2, linear shifts."""
    body = ViT(patch_size=4, dim=512, depth=6, heads=8, mlp_dim=512, embedding_dropout=0.1)
    return Recipe(
        name=f"cifar10/{row}",
        table="cifar10",
        row=row,
        about="The paper's settings, dropout of the embedding as in its released code. All "
        "labelled images train and the last weights are tested, so there is nothing to choose.",
        paper=_paper("cifar10", row),
        task="cifar10",
        model=_with_row(body, row),
        optimiser=Optimiser(lr=1e-4),
        schedule=Schedule("cosine"),
        batch=64,
        epochs=100,
        augment="crop-flip",
        choose_on="nothing",
    )


def cifar100(row: str) -> Recipe:
    """256 patches: the paper's 128 groups of 2 are patches of 2 x 2 pixels."""
    base = cifar10(row)
    return replace(
        base,
        name=f"cifar100/{row}",
        table="cifar100",
        task="cifar100",
        paper=_paper("cifar100", row),
        model=replace(base.model, patch_size=2),
    )


def imagenet(row: str) -> Recipe:
    """ViT-S/16. What the paper leaves open is as DeiT trains the same model."""
    body = ViT(patch_size=16, dim=384, depth=12, heads=6, mlp_dim=1536, bias=True)
    return Recipe(
        name=f"imagenet/{row}",
        table="imagenet",
        row=row,
        about="The paper's settings; width 384, as its parameters tell (386 is a misprint). It "
        "gives no augmentation, weight decay or warm-up: those are DeiT's.",
        paper=_paper("imagenet", row),
        task="imagenet",
        model=_with_row(body, row),
        optimiser=Optimiser(lr=5e-4, weight_decay=0.05),
        schedule=Schedule("cosine", warmup_epochs=5),
        batch=256,
        epochs=300,
        augment="mix",
        label_smoothing=0.1,
        choose_on="nothing",
    )


def analysis(row: str) -> Recipe:
    """Softmax attention beside one shift a head, and one shift a channel."""
    base = cifar10("mha" if row == "mha" else "shift")
    model = base.model
    if row == "head-shift":
        model = replace(model, mixer_options={"shift": "heads"})
    return replace(
        base,
        name=f"analysis/{row}",
        table="analysis",
        row=row,
        paper=Paper(*_ANALYSIS[row]),
        model=model,
    )


ANALYSIS_ROWS = tuple(_ANALYSIS)
